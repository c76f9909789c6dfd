package postgres_test

import (
	"errors"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgconn"

	"nudged/scheduler"
)

// stateColumns are the columns of a reminder that its state may ask for or rule out, with a value.
var stateColumns = map[string]string{
	"reason": "", "claim_id": "gen_random_uuid()", "claimed_by": "'a'", "lease_until": "now()", "retry_at": "now()",
	"handed_off_at": "now()", "finished_at": "now()", "recipient": "'r@example.com'", "message_id": "'m@example.com'",
}

// states are the states of a reminder, with the columns each needs and each must not have.
var states = map[scheduler.State]struct {
	needs, forbids string
	reasons        []scheduler.Reason
}{
	scheduler.StateClaimed:  {"claim_id claimed_by lease_until", "reason retry_at handed_off_at finished_at", nil},
	scheduler.StateSending:  {"claim_id claimed_by lease_until handed_off_at recipient message_id", "reason retry_at finished_at", nil},
	scheduler.StateSent:     {"handed_off_at finished_at", "reason lease_until retry_at", nil},
	scheduler.StateDeferred: {"reason retry_at", "lease_until finished_at", scheduler.DeferReasons()},
	scheduler.StateFailed:   {"reason finished_at", "lease_until retry_at", scheduler.FailReasons()},
	scheduler.StateUnknown:  {"reason handed_off_at finished_at", "lease_until retry_at", scheduler.UnknownReasons()},
	scheduler.StateSkipped:  {"reason finished_at", "lease_until retry_at", scheduler.SkipReasons()},
}

// insert tries to write a reminder of these columns and returns the constraint that refuses it.
func (f *fixture) insert(state scheduler.State, reason scheduler.Reason, columns []string) string {
	f.t.Helper()
	names, values := "request_id, link_created_at, slot, due_at, state", "'r', now(), '3d', now(), $1"
	args := []any{state}
	for _, column := range columns {
		names += ", " + column
		if column == "reason" {
			values, args = values+", $2", append(args, reason)
		} else {
			values += ", " + stateColumns[column]
		}
	}
	_, err := f.db.Exec(f.t.Context(), `INSERT INTO nudged.reminders (`+names+`) VALUES (`+values+`)`, args...)
	if pgErr, ok := errors.AsType[*pgconn.PgError](err); ok {
		return pgErr.ConstraintName
	}
	if err != nil {
		f.t.Fatal(err)
	}
	f.exec(`TRUNCATE nudged.reminders`)
	return ""
}

func TestEachStateHasItsColumns(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for state, columns := range states {
		needs, forbids := strings.Fields(columns.needs), strings.Fields(columns.forbids)
		reason := scheduler.Reason("")
		if len(columns.reasons) > 0 {
			reason = columns.reasons[0]
		}
		for column := range maps.Keys(stateColumns) {
			row, want := slices.Clone(needs), ""
			switch {
			case slices.Contains(needs, column):
				row = slices.DeleteFunc(row, func(c string) bool { return c == column })
				want = "reminders_state"
			case slices.Contains(forbids, column):
				row = append(row, column)
				want = "reminders_state"
			default:
				row = append(row, column)
			}
			got := f.insert(state, reason, row)
			if column == "reason" && want != "" && got == "reminders_reason" {
				continue // either constraint may speak first
			}
			if got != want {
				t.Errorf("%s with the columns %v: refused by %q, want by %q", state, row, got, want)
			}
		}
		if got := f.insert(state, reason, needs); got != "" {
			t.Errorf("%s with what it needs is refused by %s", state, got)
		}
	}
	if got := f.insert("delivered", "", []string{"finished_at"}); got != "reminders_state" {
		t.Errorf("an unknown state is refused by %q", got)
	}
}

func TestReasonsAreThoseOfTheDomain(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	every := []scheduler.Reason{"delivered"}
	for _, columns := range states {
		every = append(every, columns.reasons...)
	}
	for state, columns := range states {
		if columns.reasons == nil {
			continue // it has none: see above
		}
		for _, reason := range every {
			want := "reminders_reason"
			if slices.Contains(columns.reasons, reason) {
				want = ""
			}
			if got := f.insert(state, reason, strings.Fields(columns.needs)); got != want {
				t.Errorf("%s for %s: refused by %q, want by %q", state, reason, got, want)
			}
		}
	}
}

// What the constraints name and what the domain names is the same, in both directions.
func TestConstraintsNameNothingElse(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	words := func(values ...[]string) []string {
		return slices.Compact(slices.Sorted(slices.Values(slices.Concat(values...))))
	}
	reasons := words(texts(scheduler.SkipReasons()), texts(scheduler.FailReasons()), texts(scheduler.DeferReasons()), texts(scheduler.UnknownReasons()))
	tests := map[string][]string{
		"reminders_state":   words(texts(slices.Collect(maps.Keys(states)))),
		"reminders_reason":  words(reasons, []string{"skipped", "failed", "deferred", "unknown"}),
		"schedules_problem": words(texts(scheduler.Problems())),
		"documents_state": words(texts([]scheduler.DocumentState{
			scheduler.DocumentMissing, scheduler.DocumentReceived, scheduler.DocumentApproved, scheduler.DocumentRejected,
		})),
	}
	literal := regexp.MustCompile(`'([^']*)'`)
	for name, want := range tests {
		var got []string
		definition := f.value(`SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE connamespace = 'nudged'::regnamespace AND conname = '` + name + `'`)
		for _, match := range literal.FindAllStringSubmatch(definition, -1) {
			got = append(got, match[1])
		}
		if diff := cmp.Diff(want, words(got)); diff != "" {
			t.Errorf("%s (-domain +schema):\n%s", name, diff)
		}
	}
}

func texts[T ~string](values []T) []string {
	list := make([]string, len(values))
	for i, v := range values {
		list[i] = string(v)
	}
	return list
}

// What else the schema refuses.
func TestRefusedRows(t *testing.T) {
	t.Parallel()
	const reminder = `INSERT INTO nudged.reminders (request_id, link_created_at, slot, due_at, state, reason, finished_at)
		VALUES ('r', '2026-05-01T10:00:00Z', '3d', now(), 'skipped', 'missed', now())`
	tests := map[string]struct{ allowed, refused, by string }{
		"the same slot twice":             {reminder, reminder, "reminders_pkey"},
		"the same anchor in another zone": {reminder, strings.Replace(reminder, "10:00:00Z", "12:00:00+02:00", 1), "reminders_pkey"},
		"a second installation":           {`SELECT 1`, `INSERT INTO nudged.installation (environment) VALUES ('other')`, "installation_pkey"},
		"another installation":            {`SELECT 1`, `INSERT INTO nudged.installation (singleton, environment) VALUES (false, 'other')`, "installation_singleton"},
		"an address in capitals": {`INSERT INTO nudged.suppressions (address, reason) VALUES ('a@example.com', 'x')`,
			`INSERT INTO nudged.suppressions (address, reason) VALUES ('B@example.com', 'x')`, "suppressions_address"},
		"an address in blanks": {`SELECT 1`, `INSERT INTO nudged.suppressions (address, reason) VALUES (' a@example.com', 'x')`, "suppressions_address"},
		"a strange action": {`INSERT INTO nudged.events (actor, action, why) VALUES ('ann', 'pause', 'x')`,
			`INSERT INTO nudged.events (actor, action, why) VALUES ('ann', 'send', 'x')`, "events_action"},
		"a second link": {`INSERT INTO nudged.links (request_id, url) VALUES ('r', 'https://example.com/1')`,
			`INSERT INTO nudged.links (request_id, url) VALUES ('r', 'https://example.com/2')`, "links_pkey"},
		"a strange document": {`INSERT INTO nudged.documents (request_id, position, title) VALUES ('r', 1, 'Passport')`,
			`INSERT INTO nudged.documents (request_id, position, title, state) VALUES ('r', 2, 'Passport', 'lost')`, "documents_state"},
	}
	f := newFixture(t)
	for name, tt := range tests {
		tx := f.begin(tt.allowed)
		_, err := tx.Exec(t.Context(), tt.refused)
		if pgErr, ok := errors.AsType[*pgconn.PgError](err); !ok || pgErr.ConstraintName != tt.by {
			t.Errorf("%s: got %v, want it refused by %s", name, err, tt.by)
		}
		if err := tx.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}
