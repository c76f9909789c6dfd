package scheduler

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestMistakes has the words of each mistake, and what the plan makes of it.
func TestMistakes(t *testing.T) {
	unusable := func(r Request) (problems []Problem) {
		if r.Locale == "fran_ais" {
			problems = append(problems, ProblemUnknownLocale)
		}
		if r.ReplyTo == "nobody" {
			problems = append(problems, ProblemBadReplyTo)
		}
		return problems
	}
	hidden := Mistake{Problem: ProblemBadReplyTo}
	if got := hidden.Words(); got != "reply_to is not an address that answers can go to" {
		t.Errorf("without the address: %q", got)
	}
	for name, tt := range map[string]struct {
		request Request
		created time.Time
		want    []string // words and effect; the first is what the plan notes
		noted   Problem
		sends   bool
	}{
		"none":          {request: Request{TimeZone: "Europe/Paris", Locale: "fr", ReplyTo: "m@example.com"}, sends: true},
		"cadence":       {request: Request{Cadence: "wekly"}, noted: ProblemUnknownCadence, want: []string{`the configuration has no cadence "wekly": nothing is sent before that is put right`}},
		"zone":          {request: Request{TimeZone: "Mars/Olympus"}, noted: ProblemUnknownZone, sends: true, want: []string{`there is no time zone "Mars/Olympus": the default zone UTC is used instead`}},
		"locale":        {request: Request{Locale: "fran_ais"}, noted: ProblemUnknownLocale, sends: true, want: []string{`"fran_ais" is not the tag of a language: defaults.locale is used instead`}},
		"reply_to":      {request: Request{ReplyTo: "nobody"}, noted: ProblemBadReplyTo, sends: true, want: []string{`"nobody" is not an address that answers can go to: mails have no Reply-To`}},
		"infinity":      {created: Forever(), noted: ProblemBadAnchor, want: []string{`links.created_at is outside of the years 1970 to 9998 (it is infinity): nothing is sent before that is put right`}},
		"-infinity":     {created: BeforeAll(), noted: ProblemBadAnchor, want: []string{`links.created_at is outside of the years 1970 to 9998 (it is -infinity): nothing is sent before that is put right`}},
		"the zero time": {created: time.Time{}, noted: ProblemBadAnchor, want: []string{`links.created_at is outside of the years 1970 to 9998 (it is NULL or 0001-01-01T00:00:00Z): nothing is sent before that is put right`}},
		"all": {
			request: Request{Cadence: "wekly", TimeZone: "Mars/Olympus", Locale: "fran_ais", ReplyTo: "nobody"}, created: at("9999-05-04T10:00Z"),
			noted: ProblemUnknownCadence,
			want: []string{
				`the configuration has no cadence "wekly": nothing is sent before that is put right`,
				`links.created_at is outside of the years 1970 to 9998 (it is 9999-05-04T10:00:00Z): nothing is sent before that is put right`,
				`there is no time zone "Mars/Olympus": the default zone UTC is used instead`,
				`"fran_ais" is not the tag of a language: defaults.locale is used instead`,
				`"nobody" is not an address that answers can go to: mails have no Reply-To`,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPolicy(t)
			p.Usable = unusable
			tt.request.ID, tt.request.Status = "r", StatusPending
			if tt.noted != ProblemBadAnchor && tt.created.IsZero() {
				tt.created = created
			}
			in := Input{Now: at("2026-05-04T10:01Z"), RequestID: "r", Request: &tt.request, Link: &Link{CreatedAt: tt.created}}
			var got []string
			for _, m := range p.Mistakes(tt.request, *in.Link) {
				got = append(got, m.Words()+": "+m.Effect())
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("mistakes (-want +got):\n%s", diff)
			}
			d := p.Plan(in)
			if d.Problem != tt.noted || (d.Claim != nil) != tt.sends || len(d.Verdicts) > 0 || !tt.sends && !d.Wake.IsZero() {
				t.Errorf("plan %+v, want the problem %q noted and a claim %t", d, tt.noted, tt.sends)
			}
			_, err := p.Preview(in, "")
			if tt.sends != (err == nil) {
				t.Errorf("preview: %v", err)
			}
			if _, ok := p.NextSlot(in); ok != tt.sends {
				t.Errorf("a next slot: %t, want %t", ok, tt.sends)
			}
		})
	}
}
