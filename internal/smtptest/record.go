package smtptest

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"net/mail"
	"slices"
	"strings"
	"sync"
	"time"
)

// Fate is what became of a body.
type Fate string

// The fates of bodies.
const (
	Accepted   Fate = "accepted"   // the server committed to it
	Refused    Fate = "refused"    // the server did not
	Incomplete Fate = "incomplete" // the final dot never came
)

// Message is one mail as the server saw it.
type Message struct {
	Conn int // number of the connection, 1 for the first
	TLS  bool
	User string // who was logged in
	From string // envelope sender
	// MailParams are the parameters of MAIL, such as "BODY=8BITMIME".
	MailParams []string
	To         []string // envelope recipients that were not refused
	Data       []byte   // with CRLF line ends, dots unstuffed
	At         time.Time
	Fate       Fate
}

// Header returns one header of the data, not decoded, "" where there is none.
func (m Message) Header(name string) string {
	parsed, err := mail.ReadMessage(bytes.NewReader(m.Data))
	if err != nil {
		return ""
	}
	return parsed.Header.Get(name)
}

// MessageID returns the Message-ID without angle brackets.
func (m Message) MessageID() string { return strings.Trim(m.Header("Message-ID"), "<>") }

// record is the truth of one server. Its zero value is not ready for use.
type record struct {
	mu       sync.Mutex
	changed  chan struct{} // closed and replaced at each change
	accepted []Message
	bodies   []Message
	commands map[int][]string // of each connection
	reached  map[Stage]int
	conns    int
	open     map[int]*session
}

func newRecord() *record {
	return &record{
		changed:  make(chan struct{}),
		commands: make(map[int][]string),
		reached:  make(map[Stage]int),
		open:     make(map[int]*session),
	}
}

// update changes the record and wakes everybody who waits for it.
func (r *record) update(change func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change()
	close(r.changed)
	r.changed = make(chan struct{})
}

// wait returns when the condition holds, or with the error of ctx. The condition is called with
// the record locked.
func (r *record) wait(ctx context.Context, holds func() bool) error {
	for {
		r.mu.Lock()
		ok, changed := holds(), r.changed
		r.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (r *record) addBody(m Message) {
	r.update(func() {
		r.bodies = append(r.bodies, m)
		if m.Fate == Accepted {
			r.accepted = append(r.accepted, m)
		}
	})
}

// Accepted returns the messages that the server committed to, in order.
func (s *Server) Accepted() []Message {
	s.rec.mu.Lock()
	defer s.rec.mu.Unlock()
	return slices.Clone(s.rec.accepted)
}

// Bodies returns every body of which at least one line was seen, in order, with its fate.
func (s *Server) Bodies() []Message {
	s.rec.mu.Lock()
	defer s.rec.mu.Unlock()
	return slices.Clone(s.rec.bodies)
}

// Commands returns the lines that came on a connection, bodies and secrets left out, the final
// dot as ".".
func (s *Server) Commands(conn int) []string {
	s.rec.mu.Lock()
	defer s.rec.mu.Unlock()
	return slices.Clone(s.rec.commands[conn])
}

// Verbs returns the first word of each of the commands that came on a connection, in capitals.
func (s *Server) Verbs(conn int) []string {
	verbs := s.Commands(conn)
	for i, line := range verbs {
		verbs[i] = verbOf(line)
	}
	return verbs
}

// Reached tells how often a stage was reached, over all connections.
func (s *Server) Reached(stage Stage) int {
	s.rec.mu.Lock()
	defer s.rec.mu.Unlock()
	return s.rec.reached[stage]
}

// Connections tells how many connections were accepted so far.
func (s *Server) Connections() int {
	s.rec.mu.Lock()
	defer s.rec.mu.Unlock()
	return s.rec.conns
}

// Open tells the numbers of the connections that are open, in order.
func (s *Server) Open() []int {
	s.rec.mu.Lock()
	defer s.rec.mu.Unlock()
	return slices.Sorted(maps.Keys(s.rec.open))
}

// WaitAccepted waits until the server has committed to n messages.
func (s *Server) WaitAccepted(ctx context.Context, n int) error {
	if err := s.rec.wait(ctx, func() bool { return len(s.rec.accepted) >= n }); err != nil {
		return fmt.Errorf("wait for %d accepted messages, have %d: %w", n, len(s.Accepted()), err)
	}
	return nil
}

// WaitBodies waits until n bodies have been seen to their end, whatever their fate.
func (s *Server) WaitBodies(ctx context.Context, n int) error {
	if err := s.rec.wait(ctx, func() bool { return len(s.rec.bodies) >= n }); err != nil {
		return fmt.Errorf("wait for %d bodies, have %d: %w", n, len(s.Bodies()), err)
	}
	return nil
}

// WaitReached waits until a stage has been reached n times, over all connections.
func (s *Server) WaitReached(ctx context.Context, stage Stage, n int) error {
	if err := s.rec.wait(ctx, func() bool { return s.rec.reached[stage] >= n }); err != nil {
		return fmt.Errorf("wait for stage %s to be reached %d times, have %d: %w", stage, n, s.Reached(stage), err)
	}
	return nil
}

// WaitOpen waits until at most n connections are open.
func (s *Server) WaitOpen(ctx context.Context, n int) error {
	if err := s.rec.wait(ctx, func() bool { return len(s.rec.open) <= n }); err != nil {
		return fmt.Errorf("wait for at most %d open connections, have %v: %w", n, s.Open(), err)
	}
	return nil
}
