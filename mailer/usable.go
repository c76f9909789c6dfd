package mailer

import (
	"strings"

	"golang.org/x/text/language"

	"nudged/scheduler"
)

// Usable lists what of a request's row no mail can have, the gravest first. Mails go out all the same:
// in the default language, without a Reply-To. A language that there are no templates for is no mistake.
func Usable(r scheduler.Request) []scheduler.Problem {
	var problems []scheduler.Problem
	if _, err := language.Parse(strings.TrimSpace(r.Locale)); err != nil && r.Locale != "" {
		problems = append(problems, scheduler.ProblemUnknownLocale)
	}
	if _, ok := replyTo(r); !ok && r.ReplyTo != "" {
		problems = append(problems, scheduler.ProblemBadReplyTo)
	}
	return problems
}
