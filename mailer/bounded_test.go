package mailer_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"nudged/internal/smtptest"
	"nudged/mailer"
	"nudged/scheduler"
)

// A column that somebody fills with megabytes fails its own mail and fills no mailbox.
func TestMailIsBounded(t *testing.T) {
	m := newMailer(t, local(smtptest.Start(t, smtptest.Config{})))
	const line = "0123456789012345678901234567890123456789012345678901234567890\n"
	for _, tt := range []struct {
		lines int // of 62 bytes, once in the text and once in the HTML
		fits  bool
	}{{8_000, true}, {8_500, false}, {17_500, false}, {500_000, false}} {
		long := task()
		long.Request.Message = strings.Repeat(line, tt.lines)
		msg, err := m.Compose(long)
		if tt.fits {
			if err != nil || len(msg.Data) > 1<<20 || len(msg.Data) < 900_000 {
				t.Errorf("%d lines: %d bytes, %v", tt.lines, len(msg.Data), err)
			}
			continue
		}
		failure, ok := errors.AsType[*scheduler.ComposeError](err)
		if !ok || failure.Reason != scheduler.ReasonTemplateError || failure.Err.Error() != "the mail is larger than 1 MiB" {
			t.Errorf("%d lines: got %v, want template_error: the mail is larger than 1 MiB", tt.lines, err)
		}
	}
	if _, err := m.Compose(task()); err != nil {
		t.Errorf("the next mail: %v", err)
	}
}

// What Usable finds is what Compose leaves out.
func TestUsable(t *testing.T) {
	m := newMailer(t, local(smtptest.Start(t, smtptest.Config{})))
	for name, tt := range map[string]struct {
		locale, replyTo string
		want            []scheduler.Problem
	}{
		"nothing asked for":         {},
		"both good":                 {"pt-BR", "Marta <marta@example.org>", nil},
		"no templates for it":       {"ja", "", nil},
		"blanks around":             {" fr ", " marta@example.org ", nil},
		"no language":               {"fran_ais!", "", []scheduler.Problem{scheduler.ProblemUnknownLocale}},
		"no such language":          {"qq", "", []scheduler.Problem{scheduler.ProblemUnknownLocale}},
		"no address":                {"", "marta", []scheduler.Problem{scheduler.ProblemBadReplyTo}},
		"two addresses":             {"", "a@example.org, b@example.org", []scheduler.Problem{scheduler.ProblemBadReplyTo}},
		"a local part beyond ASCII": {"", "märta@example.org", []scheduler.Problem{scheduler.ProblemBadReplyTo}},
		"both bad":                  {"x", "@", []scheduler.Problem{scheduler.ProblemUnknownLocale, scheduler.ProblemBadReplyTo}},
	} {
		t.Run(name, func(t *testing.T) {
			asked := task()
			asked.Request.Locale, asked.Request.ReplyTo = tt.locale, tt.replyTo
			got := mailer.Usable(asked.Request)
			if !slices.Equal(got, tt.want) {
				t.Errorf("got %v, want %v", got, tt.want)
			}
			msg, err := m.Compose(asked)
			if err != nil {
				t.Fatal(err)
			}
			answers := strings.Contains(string(msg.Data), "\r\nReply-To: ")
			if want := tt.replyTo != "" && !slices.Contains(got, scheduler.ProblemBadReplyTo); answers != want {
				t.Errorf("a Reply-To: %t, want %t", answers, want)
			}
		})
	}
}
