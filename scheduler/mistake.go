package scheduler

import (
	"fmt"
	"time"

	"nudged/cadence"
)

// Mistake is one thing that is wrong with the rows of a request.
type Mistake struct {
	Problem Problem
	Value   string // what the row says; it may be an address, and that may be left out
	Instead string // name of what is used in its place, where it has one
}

// Mistakes lists all that is wrong with the rows of a request, the gravest first.
func (p *Policy) Mistakes(request Request, link Link) []Mistake {
	var problems []Problem
	if p.cadence(request) == nil {
		problems = append(problems, ProblemUnknownCadence)
	}
	if cadence.CheckAnchor(link.CreatedAt) != nil {
		problems = append(problems, ProblemBadAnchor)
	}
	if _, err := cadence.LoadZone(request.TimeZone); err != nil && request.TimeZone != "" {
		problems = append(problems, ProblemUnknownZone)
	}
	var list []Mistake
	for _, problem := range append(problems, p.unusable(request)...) {
		list = append(list, p.mistake(problem, request, link))
	}
	return list
}

// unusable lists what a mail cannot have, the gravest first.
func (p *Policy) unusable(request Request) []Problem {
	if p.Usable == nil {
		return nil
	}
	return p.Usable(request)
}

func (p *Policy) mistake(problem Problem, request Request, link Link) Mistake {
	m := Mistake{Problem: problem}
	switch problem {
	case ProblemUnknownCadence:
		m.Value = request.Cadence
	case ProblemBadAnchor:
		m.Value = anchorText(link.CreatedAt)
	case ProblemUnknownZone:
		m.Value, m.Instead = request.TimeZone, p.DefaultZone.String()
	case ProblemUnknownLocale:
		m.Value = request.Locale
	case ProblemBadReplyTo:
		m.Value = request.ReplyTo
	}
	return m
}

// anchorText writes an anchor as PostgreSQL does where it is none.
func anchorText(t time.Time) string {
	switch {
	case t.IsZero():
		return "NULL or 0001-01-01T00:00:00Z"
	case t.Equal(Forever()):
		return "infinity"
	case t.Equal(BeforeAll()):
		return "-infinity"
	default:
		return t.UTC().Format(time.RFC3339)
	}
}

// Words says what is wrong, to stand after a colon.
func (m Mistake) Words() string {
	switch m.Problem {
	case ProblemUnreadable:
		return "a view in the place of requests, links or documents fails for its row"
	case ProblemPurgedLink:
		return "the ledger was purged of reminders of this link, and nobody can tell what has gone out for it"
	case ProblemUnknownCadence:
		return fmt.Sprintf("the configuration has no cadence %q", m.Value)
	case ProblemBadAnchor:
		return fmt.Sprintf("links.created_at is outside of the years 1970 to 9998 (it is %s)", m.Value)
	case ProblemUnknownZone:
		return fmt.Sprintf("there is no time zone %q", m.Value)
	case ProblemUnknownLocale:
		return fmt.Sprintf("%q is not the tag of a language", m.Value)
	case ProblemBadReplyTo:
		if m.Value == "" {
			return "reply_to is not an address that answers can go to"
		}
		return fmt.Sprintf("%q is not an address that answers can go to", m.Value)
	default:
		return string(m.Problem)
	}
}

// Effect says what comes of it, to stand after Words.
func (m Mistake) Effect() string {
	switch m.Problem {
	case ProblemPurgedLink:
		return "nothing is sent before the link is refreshed"
	case ProblemUnreadable, ProblemUnknownCadence, ProblemBadAnchor:
		return "nothing is sent before that is put right"
	case ProblemUnknownZone:
		if m.Instead != "" {
			return "the default zone " + m.Instead + " is used instead"
		}
		return "the default zone is used instead"
	case ProblemUnknownLocale:
		return "defaults.locale is used instead"
	case ProblemBadReplyTo:
		return "mails have no Reply-To"
	default:
		return ""
	}
}
