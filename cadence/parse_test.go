package cadence

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// checkMistake wants exactly one mistake, about that key and value.
func checkMistake(t *testing.T, err error, key, value string) {
	t.Helper()
	mistakes, ok := errors.AsType[DefinitionErrors](err)
	if !ok || len(mistakes) != 1 {
		t.Errorf("%s %q: got %v, want one mistake", key, value, err)
		return
	}
	if m := mistakes[0]; m.Key != key || m.Value != value || m.Cadence != "test" || m.Reason == "" {
		t.Errorf("got %#v, want key %q and value %q", m, key, value)
	}
	if line := err.Error(); strings.Contains(line, "\n") || !strings.Contains(line, key) || !strings.Contains(line, fmt.Sprintf("%q", value)) {
		t.Errorf("got %q, want one line with %q and %q", line, key, value)
	}
}

func TestParseReportsEveryMistake(t *testing.T) {
	_, err := Parse("odd", Definition{
		After: []string{"3d", "2d", "5x"}, ThenEvery: new("5h"), Max: new(0), At: new("25:00"),
		Days: []string{"mon", "mon"}, Holidays: []string{"2026-13-01"}, BeforeDeadline: []string{"2d", "2d", "3h"},
	})
	want := `cadence "odd": after[1]: must increase, but 3d stands before it (got "2d")
cadence "odd": after[2]: unknown unit: want a whole number of s, m, h, d, w or bd, such as 3d (got "5x")
cadence "odd": then_every: tail in another unit than the last step, 3d: want s, m, h behind one of those, d, w behind d, w, and bd behind bd (got "5h")
cadence "odd": max: max below 1: want a number of mails, or no max for no ceiling (got "0")
cadence "odd": at: no such time: want HH:MM, 00:00 to 23:59 (got "25:00")
cadence "odd": days[1]: repeated: want each day once (got "mon")
cadence "odd": holidays[0]: no such date: want one like 2006-01-02 (got "2026-13-01")
cadence "odd": before_deadline[1]: repeated: want each day once (got "2d")
cadence "odd": before_deadline[2]: not calendar days: want days or weeks before the deadline, such as 2d; -1d is the day after it (got "3h")`
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
	if m, ok := errors.AsType[*DefinitionError](err); !ok || m.Index != 1 || m.Key != "after" {
		t.Errorf("first mistake is %#v, want after[1]", m)
	}
}

func TestParseRefuses(t *testing.T) {
	after := []string{"3d"}
	cron := new("0 9 * * MON")
	for _, row := range []struct {
		def        Definition
		key, value string
	}{
		{Definition{After: make([]string, 65)}, "after", "65 entries"},
		{Definition{After: []string{"100000d"}}, "after", "100000d"},
		{Definition{After: []string{"24h", "1d", "24h"}}, "after", "24h"},
		{Definition{After: []string{"2w", "10d"}}, "after", "10d"},
		{Definition{After: []string{"7d", "4bd"}}, "after", "4bd"},
		{Definition{After: []string{"2h", "120m"}}, "after", "120m"},
		{Definition{After: []string{"d"}}, "after", "d"},
		{Definition{After: []string{"1.5h"}}, "after", "1.5h"},
		{Definition{After: []string{"3d\n"}}, "after", "3d\n"},
		{Definition{After: []string{"3bd"}, ThenEvery: new("1d")}, "then_every", "1d"},
		{Definition{After: after, At: new("09:00:00")}, "at", "09:00:00"},
		{Definition{After: after, At: new("0900")}, "at", "0900"},
		{Definition{After: after, At: new("")}, "at", ""},
		{Definition{After: after, Days: []string{"Mon"}}, "days", "Mon"},
		{Definition{After: after, Holidays: []string{"2026-1-1"}}, "holidays", "2026-1-1"},
		{Definition{After: after, Holidays: make([]string, 10001)}, "holidays", "10001 dates"},
		{Definition{BeforeDeadline: []string{}}, "before_deadline", "[]"},
		{Definition{BeforeDeadline: []string{"2bd"}}, "before_deadline", "2bd"},
		{Definition{BeforeDeadline: []string{"--1d"}}, "before_deadline", "--1d"},
		{Definition{BeforeDeadline: []string{"+1d"}}, "before_deadline", "+1d"},
		{Definition{BeforeDeadline: []string{"1w", "7d"}}, "before_deadline", "7d"},
		{Definition{ThenEvery: new("1d"), Cron: cron}, "cron", *cron},
		{Definition{Cron: cron, At: new("09:00")}, "at", "09:00"},
		{Definition{Cron: cron, Days: []string{"mon", "fri"}}, "days", "mon fri"},
		{Definition{Cron: new("0 9 * * " + strings.Repeat("1,", 60) + "1")}, "cron", "0 9 * * " + strings.Repeat("1,", 60) + "1"},
	} {
		_, err := Parse("test", row.def)
		checkMistake(t, err, row.key, row.value)
	}
}

func TestParseTakes(t *testing.T) {
	cron := new("0 9 * * MON-FRI")
	for name, def := range map[string]Definition{
		"first mail alone":           {FirstMail: true},
		"deadline alone":             {BeforeDeadline: []string{"2d", "0d", "-1d"}},
		"kinds mixed":                {After: []string{"90m", "24h", "1d", "5bd", "2w"}, ThenEvery: new("1w")},
		"cron less holidays":         {Cron: cron, Holidays: []string{"2026-12-25"}},
		"cron with a deadline clock": {Cron: cron, BeforeDeadline: []string{"2d"}, At: new("09:00"), Days: workweek},
		"no holidays yet":            {After: []string{"3d"}, Holidays: []string{}},
		"a holiday in two lists":     {After: []string{"3d"}, Holidays: []string{"2026-12-25", "2026-12-25"}},
		"longest list":               {After: ladder(64)},
	} {
		if _, err := Parse(name, def); err != nil {
			t.Error(err)
		}
	}
}

func ladder(n int) []string {
	var after []string
	for day := range n {
		after = append(after, fmt.Sprintf("%dd", day+1))
	}
	return after
}

// TestCronErrorsHelp: what other crons take is refused with the spelling that works here.
func TestCronErrorsHelp(t *testing.T) {
	for expression, help := range map[string]string{
		"0 9 * * 7":       "cron's Sunday is 0, or SUN",
		"0 9 * * 5-7":     "write 5-6,0",
		"0 9 * * MON-SUN": "write MON-SAT,SUN",
		"0 9 * * SAT-SUN": "write SAT,SUN",
		"0 9 * * FRI-MON": "write FRI-SAT,SUN-MON",
		"0 9 * * fri-mon": "write fri-SAT,SUN-mon",
		"0 22-6 * * *":    "write 22-23,0-6",
		"0 9 * 11-2 *":    "write 11-12,1-2",
		"0 9 * NOV-FEB *": "write NOV-DEC,JAN-FEB",
		"0 9 * * FOO":     "want SUN MON TUE WED THU FRI SAT",
		"0 9 MON * *":     "want numbers from 1 to 31",
	} {
		_, err := Parse("test", Definition{Cron: &expression})
		checkMistake(t, err, "cron", expression)
		if err == nil || !strings.Contains(err.Error(), help) {
			t.Errorf("%s: got %v, want it to say %q", expression, err, help)
		}
		_, advice, found := strings.Cut(help, "write ")
		if !found {
			continue
		}
		fields := strings.Fields(expression)
		for i, field := range fields {
			if strings.Contains(field, "-") {
				fields[i] = advice
			}
		}
		advised := strings.Join(fields, " ")
		if _, err := Parse("test", Definition{Cron: &advised}); err != nil {
			t.Errorf("the advice itself is refused: %v", err)
		}
	}
}
