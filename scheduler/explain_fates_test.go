package scheduler

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"nudged/cadence"
)

// told writes what an explanation says of each slot that is not to come, for people to read.
func (e Explanation) told() []string {
	var lines []string
	for _, f := range e.Slots {
		if f.Fate == FateToCome {
			continue
		}
		line := fmt.Sprintf("%s %s", f.Slot.Name, f.Fate)
		if f.Reason != "" {
			line += " " + string(f.Reason)
		}
		if f.Earlier {
			line += " (earlier link)"
		}
		lines = append(lines, line, "  "+f.Rule)
		for _, fact := range f.Evidence {
			at := ""
			if !fact.At.IsZero() {
				at = instant(fact.At) + " "
			}
			if fact.Who != "" {
				at += fact.Who + " "
			}
			lines = append(lines, "  - "+at+fact.Words)
		}
	}
	return lines
}

// taken moves the instant at which a row was written.
func taken(at time.Time, r Reminder) Reminder {
	r.CreatedAt = at
	if r.State == StateSkipped {
		r.FinishedAt = at
	}
	return r
}

// TestFates has the rule and the evidence of what can become of a slot, where it takes more than the
// row itself to tell.
func TestFates(t *testing.T) {
	const (
		cadence3 = "  cadence default: slot 3d, counted from the creation of the link"
		closed   = "  requests.status: only pending and pending_resubmission are reminded"
	)
	runFates(t, map[string]fateRow{
		"late, found late": {
			now: "2026-05-05T00:00Z", rows: []Reminder{func() Reminder {
				r := taken(at("2026-05-04T15:00Z"), row("3d", "2026-05-04T10:00Z", StateSent, ""))
				r.HandedOffAt = at("2026-05-04T15:00Z")
				return r
			}()},
			want: []string{
				"3d late", "  limits.max_lateness 48h: a slot that is found late goes out within it",
				"  - 2026-05-04T15:00Z first taken up, 5h after its due: before that nudged did not run or had no database, its mail server took nothing, or the request, its link or the configuration came later",
			},
			says: "Slot 3d went out 5h late, Mon 2026-05-04 15:00:00 +00:00; the next reminder is slot 7d, due Fri 2026-05-08 10:00:00 +00:00.",
		},
		"late after other attempts": {
			now: "2026-05-05T00:00Z", rows: []Reminder{func() Reminder {
				r := taken(at("2026-05-04T10:00Z"), row("3d", "2026-05-04T10:00Z", StateSent, ""))
				r.Attempt, r.HandedOffAt = 4, at("2026-05-04T12:30Z")
				return r
			}()},
			want: []string{
				"3d late", "  limits.retry_backoff 1m to 1h between attempts, for limits.retry_for 24h",
				"  - 2026-05-04T10:00Z first taken up", "  - accepted at attempt 4; the log says what came of those before",
			},
		},
		"late because the mail server was unwell": {
			now: "2026-05-05T00:00Z", rows: []Reminder{func() Reminder {
				r := taken(at("2026-05-04T10:00Z"), row("3d", "2026-05-04T10:00Z", StateSent, ""))
				r.RetrySince, r.HandedOffAt = at("2026-05-04T12:00Z"), at("2026-05-04T12:30Z")
				return r
			}()},
			want: []string{
				"3d late", "  limits.max_lateness 48h: so long a slot waits without burning an attempt, for no fault of its own",
				"  - 2026-05-04T10:00Z first taken up",
				"  - 2026-05-04T12:00Z given back for the last time: the mail server was unwell, or the worker stopped",
			},
		},
		"late because of the mail before": {
			now: "2026-05-05T00:00Z", rows: []Reminder{
				ofLink("2026-04-01T00:00Z", row("33d", "2026-05-04T09:30Z", StateSent, "")),
				func() Reminder {
					r := taken(at("2026-05-05T09:31Z"), row("3d", "2026-05-04T10:00Z", StateSent, ""))
					r.HandedOffAt = r.CreatedAt
					return r
				}(),
			},
			p: func(p *Policy) { p.Limits.MinGap = 24 * time.Hour },
			want: []string{
				"33d on_time (earlier link)", "  slot 33d of the cadence of that time, counted from the link of that time",
				"3d late", "  limits.min_gap 24h between two mails of one request", "  - 2026-05-04T09:30Z slot 33d had gone out",
			},
		},
		"late in the queue": {
			now: "2026-05-05T00:00Z", rows: []Reminder{func() Reminder {
				r := taken(at("2026-05-04T10:00Z"), row("3d", "2026-05-04T10:00Z", StateSent, ""))
				r.HandedOffAt = at("2026-05-04T12:00Z")
				return r
			}()},
			want: []string{"3d late", "  smtp.rate and smtp.connections: so fast mails leave", "  - 2026-05-04T10:00Z first taken up"},
		},
		"settled as sent": {
			now: "2026-05-05T00:00Z", rows: []Reminder{row("3d", "2026-05-04T10:00Z", StateSent, "")},
			events: []Event{{At: at("2026-05-04T11:00Z"), Actor: "ann@desk", Action: "resolve", LinkCreatedAt: created, Slot: "3d", Detail: "sent", Why: "the log has it"}},
			want:   []string{"3d on_time", cadence3, "  - 2026-05-04T11:00Z ann@desk settled it as sent: the log has it"},
		},
		"superseded": {
			now: "2026-05-08T11:00Z", rows: []Reminder{
				taken(at("2026-05-08T10:30Z"), row("3d", "2026-05-04T10:00Z", StateSkipped, ReasonSuperseded)),
				taken(at("2026-05-08T10:30Z"), row("7d", "2026-05-08T10:00Z", StateSent, "")),
			},
			want: []string{
				"3d not_sent superseded", "  of several slots that are due at once only the newest is sent", "  - 2026-05-08T10:00Z slot 7d was due as well",
				"7d on_time", "  cadence default: slot 7d, counted from the creation of the link",
			},
		},
		"superseded and due at the next pass": {
			now: "2026-05-08T11:30Z",
			want: []string{
				"3d not_sent superseded", "  of several slots that are due at once only the newest is sent",
				"  - 2026-05-08T10:00Z slot 7d was due as well", "  - the next pass records this",
				"7d due", "  cadence default: slot 7d, counted from the creation of the link",
				"  - due for 1h30m: nudged does not run, or its mail server or its database does not take what is due; the status page and the log tell which",
			},
		},
		"missed": {
			now: "2026-05-07T00:00Z", rows: []Reminder{taken(at("2026-05-06T13:00Z"), row("3d", "2026-05-04T10:00Z", StateSkipped, ReasonMissed))},
			want: []string{
				"3d not_sent missed", "  limits.max_lateness 48h: a slot that is found later than this is not sent",
				"  - 2026-05-06T13:00Z found 2d3h after its due",
			},
		},
		"before adoption": {
			now: "2026-05-07T00:00Z", rows: []Reminder{taken(at("2026-05-06T13:00Z"), row("3d", "2026-05-04T10:00Z", StateSkipped, ReasonBeforeAdoption))},
			in:     func(in *Input) { in.AdoptedAt, in.NotBefore = at("2026-05-06T12:00Z"), at("2026-05-06T12:00Z") },
			events: []Event{{At: at("2026-05-06T12:00Z"), Actor: "ann@desk", Action: "adopt", Detail: "staging", Why: "restored"}},
			want: []string{
				"3d not_sent before_adoption",
				"  a slot due before nudged served this database is not sent, unless within limits.max_lateness 48h; one due before a person adopted the database never is",
				"  - 2026-05-06T12:00Z nudged serves this database since then",
				"  - 2026-05-06T12:00Z ann@desk adopted the database for staging: restored",
			},
		},
		"paused by a person": {
			now: "2026-05-05T00:00Z", rows: []Reminder{taken(at("2026-05-04T10:00Z"), row("3d", "2026-05-04T10:00Z", StateSkipped, ReasonPaused))},
			events: []Event{
				{At: at("2026-05-02T10:00Z"), Actor: "ann@desk", Action: "pause", Detail: "until infinity", Why: "holiday"},
				{At: at("2026-05-04T20:00Z"), Actor: "bo@desk", Action: "pause", Detail: "until infinity", Why: "ill"},
			},
			want: []string{
				"3d not_sent paused", "  requests.paused_until: a slot that falls due or waits in a pause is skipped, and not sent after it",
				"  - 2026-05-02T10:00Z ann@desk paused the request until infinity: holiday",
			},
		},
		"paused by the application": {
			now: "2026-05-05T00:00Z", rows: []Reminder{taken(at("2026-05-04T10:00Z"), row("3d", "2026-05-04T10:00Z", StateSkipped, ReasonPaused))},
			in: func(in *Input) {
				in.Request.PausedUntil, in.Request.PauseReason = at("2026-05-06T00:00Z"), "asked by phone"
			},
			want: []string{
				"3d not_sent paused", "  requests.paused_until: a slot that falls due or waits in a pause is skipped, and not sent after it",
				"  - the application paused the request until Wed 2026-05-06 00:00:00 +00:00: asked by phone",
			},
			says: "Slot 3d was not sent, and nothing is sent now: the request is paused until Wed 2026-05-06 00:00:00 +00:00 (asked by phone); after that comes slot 7d, due Fri 2026-05-08 10:00:00 +00:00.",
		},
		"closed before the slot": {
			now: "2026-05-05T00:00Z", in: func(in *Input) { in.Request.Status = "completed" },
			want: []string{
				"3d not_sent request_closed", closed, `  - the status is "completed" now; when it changed, the application knows`,
				"  - 2026-05-06T10:00Z if the request is opened again by then, and no newer slot is due, it still goes out",
			},
			says: `Slot 3d is not sent while the request is "completed": only pending and pending_resubmission are reminded.`,
		},
		"closed after a mail": {
			now: "2026-05-09T00:00Z", rows: []Reminder{row("3d", "2026-05-04T10:00Z", StateSent, "")}, in: func(in *Input) { in.Request.Status = "completed" },
			want: []string{
				"3d on_time", cadence3, "7d not_sent request_closed", closed, `  - the status is "completed" now; when it changed, the application knows`,
				"  - 2026-05-10T10:00Z if the request is opened again by then, and no newer slot is due, it still goes out",
			},
			says: `Slot 3d went out on time, Mon 2026-05-04 10:00:00 +00:00; nothing is sent: the request is "completed", and only pending and pending_resubmission are reminded.`,
		},
		"so old that rows are deleted": {
			now: "2027-08-01T00:00Z", in: func(in *Input) { in.Request.Status = "completed" },
			p:    func(p *Policy) { p.with(t, "default", cadence.Definition{After: []string{"3d", "7d", "60d"}}) },
			want: []string{"60d not_sent request_closed", closed, `  - the status is "completed" now; when it changed, the application knows`},
		},
		"too soon": {
			now: "2026-05-04T10:10Z", rows: []Reminder{ofLink("2026-04-01T00:00Z", row("33d", "2026-05-04T09:30Z", StateSent, ""))},
			want: []string{
				"33d on_time (earlier link)", "  slot 33d of the cadence of that time, counted from the link of that time",
				"3d waits", "  limits.min_gap 1h between two mails of one request", "  - 2026-05-04T09:30Z slot 33d had gone out",
				"  - 2026-05-04T10:30Z it goes out at the first pass after this",
			},
			says: "The link was refreshed Fri 2026-05-01 10:00:00 +00:00 and its series began anew, after 1 mail for the link before; slot 3d is due since Mon 2026-05-04 10:00:00 +00:00 and waits until Mon 2026-05-04 10:30:00 +00:00: limits.min_gap 1h between two mails of one request.",
		},
		"out of time at the next pass": {
			now: "2026-05-06T11:00Z", rows: []Reminder{deferred("3d", "2026-05-04T10:00Z", "2026-05-04T11:00Z")},
			want: []string{"3d not_sent missed", "  limits.max_lateness 48h: a slot that is found later than this is not sent", "  - 2026-05-06T11:00Z found 2d1h after its due", "  - the next pass records this"},
		},
		"settled by a later one": {
			now: "2026-05-05T00:00Z", rows: []Reminder{row("3d", "2026-05-04T10:00Z", StateSent, "")},
			p: func(p *Policy) { p.with(t, "default", cadence.Definition{After: []string{"2d", "3d", "7d"}}) },
			want: []string{
				"2d not_sent", "  a slot that was due no later than one with a row in the ledger is settled by it",
				"  - 2026-05-04T10:00Z the latest slot with a row was due", "3d on_time", cadence3,
			},
		},
		"of a cadence that was changed": {
			now: "2026-05-05T00:00Z", rows: []Reminder{row("3d", "2026-05-04T10:00Z", StateSent, "")},
			p:    func(p *Policy) { p.with(t, "default", cadence.Definition{After: []string{"5d", "7d"}}) },
			want: []string{"3d on_time", "  slot 3d by the cadence, zone or deadline of that time; today's cadence default has no slot of this name then"},
		},
	})
}

// fateRow is a request, and what its slots are told of.
type fateRow struct {
	now    string
	rows   []Reminder
	events []Event
	in     func(*Input)
	p      func(*Policy)
	want   []string
	says   string // the sentence; empty: not looked at
}

func runFates(t *testing.T, rows map[string]fateRow) {
	t.Helper()
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			in := Input{
				Now: at(row.now), AdoptedAt: at("2020-01-01T00:00Z"), RequestID: "r",
				Request: &Request{ID: "r", Status: StatusPending}, Link: &Link{CreatedAt: created}, Reminders: row.rows,
			}
			p := newPolicy(t)
			if row.in != nil {
				row.in(&in)
			}
			if row.p != nil {
				row.p(p)
			}
			e := p.Explain(in, row.events, 3)
			if diff := cmp.Diff(row.want, e.told()); diff != "" {
				t.Errorf("slots (-want +got):\n%s", diff)
			}
			if row.says != "" && e.Sentence != row.says {
				t.Errorf("sentence %q\nwant     %q", e.Sentence, row.says)
			}
		})
	}
}

// Every reason has words and a rule of its own.
func TestEveryReasonHasARule(t *testing.T) {
	x := explainer{policy: newPolicy(t)}
	for _, reason := range slices.Concat(SkipReasons(), FailReasons(), DeferReasons(), UnknownReasons()) {
		if reason.Words() == string(reason) || x.rule(reason) == "" {
			t.Errorf("%s: words %q, rule %q", reason, reason.Words(), x.rule(reason))
		}
	}
	for _, fate := range Fates() {
		if strings.Contains(fate.Words(), "_") {
			t.Errorf("%s has no words", fate)
		}
	}
}

func TestSpell(t *testing.T) {
	for want, d := range map[string]time.Duration{
		"0s": 0, "500ms": 500 * time.Millisecond, "59s": 59 * time.Second, "1m": time.Minute, "1m30s": 90 * time.Second,
		"1h30m": 90 * time.Minute, "48h": 48 * time.Hour, "5d3h": 123 * time.Hour, "7d": 7 * 24 * time.Hour, "1h": time.Hour + 5*time.Second,
	} {
		if got := spell(d); got != want {
			t.Errorf("%s is spelt %s, want %s", d, got, want)
		}
	}
}
