package config

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

const (
	day  = 24 * time.Hour
	week = 7 * day

	wantDuration = "want a duration such as 90s, 5m, 48h, 7d or 2w"
)

var durationParts = regexp.MustCompile(`(?s)^(?:(\d+)w)?(?:(\d+)d)?(.*)$`)

// duration returns a parser for what time.ParseDuration takes down to ms, preceded by weeks and days of
// 24 hours. A bare number is refused, and so is anything below the minimum.
func duration(minimum time.Duration) func(string) (time.Duration, error) {
	return func(text string) (time.Duration, error) {
		d, err := parseDuration(text)
		if err == nil && d < minimum {
			return 0, fmt.Errorf("too short, want at least %s", minimum)
		}
		return d, err
	}
}

// zeroOr is duration for keys that zero switches off.
func zeroOr(minimum time.Duration) func(string) (time.Duration, error) {
	return func(text string) (time.Duration, error) {
		d, err := parseDuration(text)
		if err == nil && d > 0 && d < minimum {
			return 0, fmt.Errorf("too short, want at least %s, or 0s for none", minimum)
		}
		return d, err
	}
}

func parseDuration(text string) (time.Duration, error) {
	switch {
	case text == "":
		return 0, errors.New("empty, " + wantDuration)
	case strings.HasPrefix(text, "-"):
		return 0, errors.New("negative, " + wantDuration)
	case strings.Trim(text, "0123456789.") == "":
		return 0, errors.New("no unit, " + wantDuration)
	case strings.ContainsAny(text, "+-nuµμ"): // a sign inside, or one of the units below ms
		return 0, errors.New(wantDuration)
	}
	parts := durationParts.FindStringSubmatch(text)
	var total time.Duration
	for i, unit := range []time.Duration{week, day} {
		if parts[i+1] == "" {
			continue
		}
		n, err := strconv.ParseInt(parts[i+1], 10, 64)
		if err != nil || n > int64((math.MaxInt64-total)/unit) {
			return 0, errors.New("too long, " + wantDuration)
		}
		total += time.Duration(n) * unit
	}
	if parts[3] == "" {
		return total, nil
	}
	rest, err := time.ParseDuration(parts[3])
	if err != nil || parts[3] == "0" {
		return 0, errors.New(wantDuration)
	}
	if rest > math.MaxInt64-total {
		return 0, errors.New("too long, " + wantDuration)
	}
	return total + rest, nil
}

// Tick says when the loop turns: by a distance or by a cron expression.
type Tick struct {
	Every time.Duration // at least 100 ms; 0 where Cron is set
	Cron  string        // five fields; empty where Every is set
}

// Schedule returns the tick as a text for cron.AddFunc. Of Every, cron keeps whole seconds only and
// at least one: a faster loop has to read Every.
func (t Tick) Schedule() string {
	if t.Cron != "" {
		return t.Cron
	}
	return "@every " + max(t.Every, time.Second).String()
}

// tick parses a duration, or a cron expression where there are blanks.
func tick(text string) (Tick, error) {
	if !strings.Contains(text, " ") {
		every, err := duration(100 * time.Millisecond)(text)
		if err != nil {
			return Tick{}, fmt.Errorf("%w, or a cron expression of five fields", err)
		}
		return Tick{Every: every}, nil
	}
	// A sixth field is refused here, and so is the prefix TZ=, on which the parser can panic.
	_, err := line(text)
	if err != nil || len(strings.Fields(text)) != 5 || strings.Contains(text, "TZ=") {
		return Tick{}, errors.New("want a cron expression of five fields, or a duration such as 30s")
	}
	schedule, err := cron.ParseStandard(text)
	if err != nil {
		return Tick{}, fmt.Errorf("not a cron expression: %w", err)
	}
	if schedule.Next(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		return Tick{}, errors.New("a cron expression that never matches")
	}
	return Tick{Cron: text}, nil
}
