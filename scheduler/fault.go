package scheduler

import "time"

// sayAgain is how long a fault must last before it is told again, should its words have changed.
const sayAgain = time.Minute

// fault tells an operator once about something that goes wrong again and again. An outage speaks
// in many words (ports, states of a server that stops): it is told at once and then rarely.
type fault struct {
	text string // empty: all is well
	at   time.Time
}

// worthSaying notes the fault and reports whether it is to be logged.
func (f *fault) worthSaying(err error, now time.Time) bool {
	text := err.Error()
	if f.text != "" && (text == f.text || now.Sub(f.at) < sayAgain) {
		return false
	}
	f.text, f.at = text, now
	return true
}

// over ends the fault and reports whether there was one.
func (f *fault) over() bool {
	was := f.text != ""
	f.text = ""
	return was
}
