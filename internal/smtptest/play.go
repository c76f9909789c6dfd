package smtptest

import (
	"io"
	"strings"
	"time"
)

// answer asks the script and plays its action, or the usual answer. It returns the first digit
// of the answer that was given, 0 where there was none.
func (s *session) answer(stage Stage, line, usual string) (byte, error) {
	s.complete()
	s.srv.rec.update(func() { s.srv.rec.reached[stage]++ })
	a := (*s.srv.script.Load())(Event{Stage: stage, Conn: s.id, Line: line, Message: s.msg})
	if a.reply == "" && a.raw == "" && !a.silent {
		a.reply = usual
	}
	if stage == StageDot {
		s.finish(a.fate())
	}
	if err := s.pause(a); err != nil {
		return 0, err
	}
	digit, err := s.say(a)
	if err != nil {
		return digit, err
	}
	return digit, s.end(a.end, stage)
}

// fate tells whether a message answered in this way counts as accepted.
func (a Action) fate() Fate {
	if a.commit == accepted || a.commit == byReply && strings.HasPrefix(a.reply, "2") {
		return Accepted
	}
	return Refused
}

// pause waits as the action wants it.
func (s *session) pause(a Action) error {
	if a.until == nil && a.after == 0 {
		return nil
	}
	if err := s.flush(); err != nil {
		return err
	}
	if a.until != nil {
		select {
		case <-a.until:
		case <-s.srv.done:
			return errEnded
		}
	}
	timer := time.NewTimer(a.after)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-s.srv.done:
		return errEnded
	}
}

func (s *session) say(a Action) (byte, error) {
	switch {
	case a.raw != "":
		if err := s.write(a.raw); err != nil {
			return 0, err
		}
		return 0, s.flush()
	case a.reply != "":
		return a.reply[0], s.reply(a.reply)
	}
	return 0, nil
}

func (s *session) end(how end, stage Stage) error {
	if how == stay {
		return nil
	}
	_ = s.flush()
	switch how {
	case rst:
		s.reset()
	case blackhole:
		if stage == StageBody { // the client shall find its buffers full
			<-s.srv.done
		} else {
			_, _ = io.Copy(io.Discard, s.r)
		}
	}
	return errEnded
}
