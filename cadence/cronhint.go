package cadence

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// cronField is what may stand in one field of an expression.
type cronField struct {
	lowest, highest int
	names           []string // of the values from lowest on
}

var cronFields = [...]cronField{ //nolint:gochecknoglobals // a table
	{lowest: 0, highest: 59},
	{lowest: 0, highest: 23},
	{lowest: 1, highest: 31},
	{lowest: 1, highest: 12, names: strings.Fields("JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC")},
	{lowest: 0, highest: 6, names: strings.Fields("SUN MON TUE WED THU FRI SAT")},
}

// cronHint says how to write the first item that robfig's parser refuses although other
// crons take it: Sunday as 7, and ranges that run over the end. It is empty where it has
// no advice. The fields have passed cronItem.
func cronHint(fields []string) string {
	for i, field := range fields {
		for item := range strings.SplitSeq(field, ",") {
			m := cronItem.FindStringSubmatch(item)
			if hint := cronFields[i].hint(m[1], m[2]); hint != "" {
				return "; " + hint
			}
		}
	}
	return ""
}

// hint advises on an item; to is empty where it is no range.
func (f cronField) hint(from, to string) string {
	for _, word := range []string{from, to} {
		if _, ok := f.value(word); !ok && word != "" {
			return fmt.Sprintf("want %s", f.allowed())
		}
	}
	low, _ := f.value(from)
	high, _ := f.value(to)
	sunday := f.highest == 6
	switch {
	case sunday && low == 7:
		return "cron's Sunday is 0, or SUN"
	case sunday && high == 7:
		return "cron's Sunday is 0, or SUN: write " + span(from, "6") + ",0"
	case to != "" && high < low && low <= f.highest:
		return "write " + span(from, f.like(from, f.highest)) + "," + span(f.like(to, f.lowest), to)
	}
	return ""
}

// value reads a number or a name of the field, in any case.
func (f cronField) value(word string) (int, bool) {
	if n, err := strconv.Atoi(word); err == nil {
		return n, true
	}
	at := slices.Index(f.names, strings.ToUpper(word))
	return f.lowest + at, at >= 0
}

// like spells n as word is spelled: by name, or as a number.
func (f cronField) like(word string, n int) string {
	if _, err := strconv.Atoi(word); err != nil {
		return f.names[n-f.lowest]
	}
	return strconv.Itoa(n)
}

func (f cronField) allowed() string {
	if f.names == nil {
		return fmt.Sprintf("numbers from %d to %d", f.lowest, f.highest)
	}
	return strings.Join(f.names, " ")
}

// span writes a range, and a range of one as its only value.
func span(from, to string) string {
	if strings.EqualFold(from, to) {
		return from
	}
	return from + "-" + to
}
