package postgres_test

import (
	"fmt"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"nudged/internal/postgres"
	"nudged/scheduler"
)

// hours are days for tests: they begin now and every hour from now.
func hours(n int) []time.Time {
	begins := make([]time.Time, n+1)
	for i := range begins {
		begins[i] = time.Now().Add(time.Duration(i) * time.Hour)
	}
	return begins
}

func (f *fixture) status(q postgres.StatusQuery) postgres.Status {
	f.t.Helper()
	status, err := f.store.Status(f.t.Context(), q)
	if err != nil {
		f.t.Fatal(err)
	}
	return status
}

// wake sets when a request is looked at next: an interval from now, or 'infinity' and the like.
func (f *fixture) wake(requestID, at string) {
	f.t.Helper()
	f.exec(`INSERT INTO nudged.schedules (request_id, wake_at) VALUES ($1, $2::timestamptz)
		ON CONFLICT (request_id) DO UPDATE SET wake_at = $2::timestamptz`, requestID, at)
}

func (f *fixture) wakeIn(requestID string, d time.Duration) {
	f.t.Helper()
	f.wake(requestID, time.Now().Add(d).Format(time.RFC3339Nano))
}

func TestStatusOfAnEmptyDatabase(t *testing.T) {
	t.Parallel()
	got := newFixture(t).status(postgres.StatusQuery{Late: time.Hour, Rows: 20, Count: 100, Days: hours(2)})
	if time.Since(got.Now).Abs() > time.Minute || got.Now.Location() != time.UTC {
		t.Errorf("now is %s", got.Now)
	}
	got.Now = time.Time{}
	want := postgres.Status{
		Outcomes: []scheduler.Reminder{}, Unsettled: []scheduler.Reminder{}, Mistakes: []postgres.Mistake{}, Upcoming: []int{0, 0},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
}

func TestStatusCountsWhatIsDue(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.wakeIn("early", time.Hour)
	f.wakeIn("on-time", -time.Minute)
	f.wakeIn("late", -2*time.Hour)
	f.wake("fresh", "-infinity")
	for i, column := range []string{"lease_until", "retry_at"} {
		state, reason := "claimed", any(nil)
		if column == "retry_at" {
			state, reason = "deferred", "greylisted"
		}
		f.exec(`INSERT INTO nudged.reminders (request_id, link_created_at, slot, due_at, state, reason, claim_id, claimed_by, `+column+`)
			VALUES ($1, now(), '3d', now() - $2::interval, $3, $4, gen_random_uuid(), 'a', now() + interval '1 minute')`,
			column, time.Duration(3-3*i)*time.Hour, state, reason)
	}
	got := f.status(postgres.StatusQuery{Late: time.Hour, Rows: 20, Count: 100, Days: hours(1)})
	if got.Late != 2 || got.OnTime != 2 || got.Unplanned != 1 {
		t.Errorf("%d late, %d on time, %d not planned; want 2, 2 and 1", got.Late, got.OnTime, got.Unplanned)
	}
	if age := got.Now.Sub(got.Oldest); (age - 3*time.Hour).Abs() > time.Second {
		t.Errorf("the oldest waits for %s, want 3h", age)
	}

	for i := range 20 {
		f.wakeIn(fmt.Sprint("late-", i), -5*time.Hour)
		f.wakeIn(fmt.Sprint("on-time-", i), -time.Minute)
		f.wake(fmt.Sprint("fresh-", i), "-infinity")
	}
	got = f.status(postgres.StatusQuery{Late: time.Hour, Rows: 20, Count: 10, Days: hours(1)})
	if got.Late != 10+1 || got.OnTime != 0+1 || got.Unplanned != 10 {
		t.Errorf("counting to 10: %d late, %d on time, %d not planned; want the late ones first", got.Late, got.OnTime, got.Unplanned)
	}
}

func TestStatusCountsTheDaysToCome(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for id, d := range map[string]time.Duration{
		"due": -time.Minute, "a": 10 * time.Minute, "b": 50 * time.Minute, "c": 130 * time.Minute, "beyond": 200 * time.Minute,
	} {
		f.wakeIn(id, d)
	}
	f.wake("never", "infinity")
	f.wake("fresh", "-infinity")
	if diff := cmp.Diff([]int{2, 0, 1}, f.status(postgres.StatusQuery{Count: 100, Days: hours(3)}).Upcoming); diff != "" {
		t.Errorf("reminders of the days (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]int{1, 0, 1}, f.status(postgres.StatusQuery{Count: 1, Days: hours(3)}).Upcoming); diff != "" {
		t.Errorf("counting to 1 (-want +got):\n%s", diff)
	}
}

// Every way an attempt can end is an outcome, and no skip is one.
func TestStatusListsTheLastOutcomes(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var want []string
	add := func(state scheduler.State, reasons ...scheduler.Reason) {
		for _, reason := range reasons {
			f.exec(`INSERT INTO nudged.reminders (request_id, link_created_at, slot, due_at, state, reason, attempt, handed_off_at, finished_at,
					smtp_code, smtp_reply)
				VALUES ($1, '2026-03-01 09:00:00.123456Z', '3d', '2026-03-04 09:00Z', $2, nullif($1, ''), 2, now(),
					clock_timestamp(), 250, '2.0.0 Ok')`, string(reason), string(state))
			want = append(want, fmt.Sprintf("%s/%s", state, reason))
		}
	}
	add(scheduler.StateFailed, scheduler.FailReasons()...)
	add(scheduler.StateUnknown, scheduler.UnknownReasons()...)
	add(scheduler.StateSent, "")
	outcomes := len(want)
	add(scheduler.StateSkipped, scheduler.SkipReasons()...)
	want = want[:outcomes]
	slices.Reverse(want)

	var got []string
	outcome := f.status(postgres.StatusQuery{Rows: 100, Days: hours(1)}).Outcomes
	for _, r := range outcome {
		got = append(got, fmt.Sprintf("%s/%s", r.State, r.Reason))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("last outcomes (-want +got):\n%s", diff)
	}
	first := outcome[0]
	if time.Since(first.FinishedAt).Abs() > time.Minute {
		t.Errorf("the last outcome is of %s", first.FinishedAt)
	}
	first.FinishedAt = time.Time{}
	if diff := cmp.Diff(scheduler.Reminder{
		LinkCreatedAt: time.Date(2026, 3, 1, 9, 0, 0, 123456000, time.UTC), Slot: "3d",
		DueAt: time.Date(2026, 3, 4, 9, 0, 0, 0, time.UTC), State: scheduler.StateSent, Attempt: 2, SMTPCode: 250, SMTPReply: "2.0.0 Ok",
	}, first); diff != "" {
		t.Errorf("the last outcome (-want +got):\n%s", diff)
	}
	if few := f.status(postgres.StatusQuery{Rows: 2, Days: hours(1)}).Outcomes; len(few) != 2 {
		t.Errorf("%d outcomes, want 2", len(few))
	}
}

func TestStatusListsWhatWaitsForAPerson(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for i := range 5 {
		f.exec(`INSERT INTO nudged.reminders (request_id, link_created_at, slot, due_at, state, reason, attempt, claimed_by, handed_off_at,
				finished_at, message_id, created_at)
			SELECT $1, t, '7d', t, 'unknown', 'worker_lost', 1, 'host/1', t, t, 'm@example.com', t - $2::interval FROM now() AS t`,
			fmt.Sprint("u-", i), time.Duration(i)*time.Hour)
	}
	f.exec(`INSERT INTO nudged.requests (id, account_id, status, recipient_email, title, cadence, time_zone, locale, reply_to)
		VALUES ('c', 'a', 'pending', 'c@example.com', 'T', 'weekley', 'UTC', NULL, NULL), ('z', 'a', 'pending', 'z@example.com', 'T', 'default', 'Europe/Pariss', NULL, NULL),
		('l', 'a', 'pending', 'l@example.com', 'T', NULL, NULL, 'fran_ais', NULL), ('r', 'a', 'pending', 'r@example.com', 'T', NULL, NULL, NULL, 'nobody@')`)
	f.exec(`INSERT INTO nudged.links (request_id, url, created_at) VALUES ('a', 'https://example.com/u', 'infinity')`)
	f.exec(`DELETE FROM nudged.schedules`)
	f.exec(`INSERT INTO nudged.schedules (request_id, problem) VALUES ('c', 'unknown_cadence'), ('z', 'unknown_zone'), ('gone', 'unknown_zone'),
		('a', 'anchor_out_of_range'), ('l', 'unknown_locale'), ('r', 'invalid_reply_to')`)
	got := f.status(postgres.StatusQuery{Rows: 6, Count: 100, Days: hours(1)})
	if got.Unknown != 5 || len(got.Unsettled) != 5 {
		t.Errorf("%d unknown and %d listed, want 5 and 5", got.Unknown, len(got.Unsettled))
	}
	if few := f.status(postgres.StatusQuery{Rows: 3, Count: 100, Days: hours(1)}); len(few.Unsettled) != 3 || len(few.Mistakes) != 3 {
		t.Errorf("%d unknown and %d mistakes listed, want 3 of each", len(few.Unsettled), len(few.Mistakes))
	}
	if r := got.Unsettled[0]; r.RequestID != "u-4" || r.State != scheduler.StateUnknown || r.Reason != scheduler.ReasonWorkerLost ||
		r.MessageID != "m@example.com" || r.ClaimedBy != "host/1" || r.HandedOffAt.IsZero() {
		t.Errorf("the oldest unknown one is %+v", r)
	}
	if diff := cmp.Diff([]postgres.Mistake{
		{"a", scheduler.ProblemBadAnchor, "infinity"}, {"r", scheduler.ProblemBadReplyTo, ""},
		{"c", scheduler.ProblemUnknownCadence, "weekley"}, {"l", scheduler.ProblemUnknownLocale, "fran_ais"}, {"gone", scheduler.ProblemUnknownZone, ""}, {"z", scheduler.ProblemUnknownZone, "Europe/Pariss"},
	}, got.Mistakes); diff != "" {
		t.Errorf("mistakes (-want +got):\n%s", diff)
	}
}

// A pooler in transaction mode allows no prepared statement.
func TestStatusWithoutPreparedStatements(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	u, err := url.Parse(f.url)
	if err != nil {
		t.Fatal(err)
	}
	query := u.Query()
	query.Set("default_query_exec_mode", "exec")
	u.RawQuery = query.Encode()
	f.wakeIn("soon", time.Minute)
	status, err := openStore(t, u.String()).Status(t.Context(), postgres.StatusQuery{Late: time.Hour, Rows: 20, Count: 100, Days: hours(1)})
	if err != nil || status.Upcoming[0] != 1 {
		t.Errorf("status %+v, %v", status, err)
	}
}
