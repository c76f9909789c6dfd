package main

import (
	"os/exec"
	"strings"
	"testing"
	"time"

	"nudged/scheduler"
)

// A shell reads each word as it was meant.
func TestQuoted(t *testing.T) {
	for _, word := range []string{
		"r-1", "", "a b", "it's", "$(touch x)", "`x`", `\`, `"`, "a;b", "*", "~", "é", "\u202e", "tab\there", "line\nbreak", "\x1b[31m", "!x", "#", "\xff",
	} {
		shell, err := exec.LookPath("bash")
		if err != nil {
			t.Skip("no bash")
		}
		out, err := exec.Command(shell, "-c", "printf %s "+quoted(word)).Output()
		if err != nil || string(out) != word {
			t.Errorf("%q is quoted %s, which is read as %q (%v)", word, quoted(word), out, err)
		}
		for _, r := range quoted(word) {
			if r < ' ' || r == 0x7f {
				t.Errorf("%q is quoted %q, with a control character", word, quoted(word))
			}
		}
	}
}

func TestResolveCommand(t *testing.T) {
	r := scheduler.Reminder{RequestID: "r-1", Slot: "3d", LinkCreatedAt: time.Date(2026, 3, 2, 9, 0, 0, 123456000, time.UTC)}
	c := command{program: "nudged", flags: []string{"--config.file=/etc/nudged.yml"}}
	sent, notSent := c.resolve(r)
	want := `nudged resolve r-1 3d --sent \
  --why 'the log of the mail server has it' \
  --link=2026-03-02T09:00:00.123456Z --config.file=/etc/nudged.yml`
	if sent != want || !strings.Contains(notSent, " --not-sent ") {
		t.Errorf("got\n%s\n%s, want\n%s", sent, notSent, want)
	}
	r.RequestID = "-x"
	if sent, _ := c.resolve(r); !strings.HasSuffix(sent, " -- -x 3d") {
		t.Errorf("an id like a flag: %s", sent)
	}
}

// Days begin at midnight of the zone, also where a clock change takes midnight away.
func TestDaysFrom(t *testing.T) {
	for zone, c := range map[string]struct {
		now  string
		want []string
	}{
		"UTC":              {"2026-03-02T15:00:00Z", []string{"2026-03-03T00:00:00Z", "2026-03-04T00:00:00Z", "2026-03-05T00:00:00Z"}},
		"Europe/Paris":     {"2026-03-28T22:59:59Z", []string{"2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z", "2026-03-30T22:00:00Z"}},
		"America/Santiago": {"2026-09-05T12:00:00Z", []string{"2026-09-06T04:00:00Z", "2026-09-07T03:00:00Z", "2026-09-08T03:00:00Z"}}, // no midnight on the 6th
	} {
		location, err := time.LoadLocation(zone)
		if err != nil {
			t.Fatal(err)
		}
		now, err := time.Parse(time.RFC3339, c.now)
		if err != nil {
			t.Fatal(err)
		}
		days, err := daysFrom(now, location, len(c.want))
		if err != nil || len(days) != len(c.want)+1 || !days[0].Equal(now) {
			t.Fatalf("%s: %v, %v", zone, days, err)
		}
		for i, want := range c.want {
			if got := days[i+1].UTC().Format(time.RFC3339); got != want {
				t.Errorf("%s: day %d begins %s, want %s", zone, i+1, got, want)
			}
		}
	}
}
