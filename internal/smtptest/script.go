package smtptest

import (
	"sync/atomic"
	"time"
)

// Stage is a place in the conversation where the server is about to answer.
type Stage string

// The stages. StageBody comes once in a message, when the first line of the body has arrived;
// StageDot comes when the line with the final dot has.
const (
	StageConnect  Stage = "connect"
	StageEHLO     Stage = "EHLO"
	StageSTARTTLS Stage = "STARTTLS"
	StageAUTH     Stage = "AUTH"
	StageMAIL     Stage = "MAIL"
	StageRCPT     Stage = "RCPT"
	StageDATA     Stage = "DATA"
	StageBody     Stage = "body"
	StageDot      Stage = "dot"
	StageRSET     Stage = "RSET"
	StageNOOP     Stage = "NOOP"
	StageQUIT     Stage = "QUIT"
)

// Event is what a script decides about.
type Event struct {
	Stage Stage
	Conn  int    // number of the connection, 1 for the first
	Line  string // the command as it came, without CRLF; empty at connect, body and dot
	// Message is the mail in the making: its envelope from MAIL on, its data at the dot.
	Message Message
}

// Action replaces what the server would do by itself. The zero Action replaces nothing.
type Action struct {
	reply  string
	raw    string
	silent bool
	end    end
	commit commit
	until  <-chan struct{}
	after  time.Duration
}

type end int

const (
	stay end = iota
	fin
	rst
	blackhole
)

type commit int

const (
	byReply commit = iota
	accepted
	refused
)

func (a Action) zero() bool { return a == Action{} }

// Answer replies with a code and text, such as "550 5.1.1 no such user". Lines of a longer
// answer are separated by "\n", each with its code: "250-one\n250 two". A message is accepted
// if the answer to its final dot is 2xx.
func Answer(reply string) Action { return Action{reply: reply} }

// Raw sends these bytes instead of an answer: garbage, or an answer cut in the middle of a line.
func Raw(bytes string) Action { return Action{raw: bytes} }

// Hangup closes the connection (FIN) without an answer.
func Hangup() Action { return Action{silent: true, end: fin} }

// Reset breaks the connection (RST) without an answer.
func Reset() Action { return Action{silent: true, end: rst} }

// Stall never answers. The connection stays open until the client or the server closes it. In a
// body the server also stops reading, so that the client finds the buffers full; there only the
// server's Close ends it.
func Stall() Action { return Action{silent: true, end: blackhole} }

// ThenHangup closes the connection (FIN) after the answer.
func (a Action) ThenHangup() Action { a.end = fin; return a }

// ThenReset breaks the connection (RST) after the answer.
func (a Action) ThenReset() Action { a.end = rst; return a }

// ThenStall never says anything more after the answer.
func (a Action) ThenStall() Action { a.end = blackhole; return a }

// Until does it only when the channel is closed. The commitment to a message does not wait.
func (a Action) Until(released <-chan struct{}) Action { a.until = released; return a }

// After does it only after this long. The commitment to a message does not wait.
func (a Action) After(d time.Duration) Action { a.after = d; return a }

// Accepting commits to the message, whatever the answer to its final dot says.
func (a Action) Accepting() Action { a.commit = accepted; return a }

// Refusing does not commit to the message, whatever the answer to its final dot says.
func (a Action) Refusing() Action { a.commit = refused; return a }

// Script decides what the server does. It is called by several goroutines at once, with no lock
// held.
type Script func(Event) Action

// At plays the actions one after the other as the stage is reached, over all connections, and
// leaves everything after the last one alone.
func At(stage Stage, actions ...Action) Script {
	var next atomic.Int64
	return func(e Event) Action {
		if e.Stage != stage {
			return Action{}
		}
		if i := next.Add(1) - 1; i < int64(len(actions)) {
			return actions[i]
		}
		return Action{}
	}
}

// Always plays the action each time the stage is reached.
func Always(stage Stage, a Action) Script {
	return func(e Event) Action {
		if e.Stage == stage {
			return a
		}
		return Action{}
	}
}

// OnDot decides about each message that arrived whole.
func OnDot(decide func(Message) Action) Script {
	return func(e Event) Action {
		if e.Stage == StageDot {
			return decide(e.Message)
		}
		return Action{}
	}
}

// OnConn limits a script to the connection of this number.
func OnConn(n int, script Script) Script {
	return func(e Event) Action {
		if e.Conn == n {
			return script(e)
		}
		return Action{}
	}
}

// First asks the scripts in order and takes the first one that cares.
func First(scripts ...Script) Script {
	return func(e Event) Action {
		for _, s := range scripts {
			if a := s(e); !a.zero() {
				return a
			}
		}
		return Action{}
	}
}
