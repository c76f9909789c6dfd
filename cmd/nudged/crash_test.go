package main_test

import (
	"sync"
	"testing"
	"time"

	"nudged/internal/smtptest"
)

// Killed with -9 at each step of a reminder's way, then started again: at most one accepted
// message, and nothing lost that was certainly not sent.
func TestKillAtEachStep(t *testing.T) {
	release := func(l *locks) { l.abort(); l.release() }
	tests := []struct {
		name     string
		block    string          // the state whose commit is held up
		script   smtptest.Script // what holds up the conversation instead
		reached  func(s *site)   // waits until the step is reached
		accepted int             // messages that the server has accepted in the end
		row      string          // where the reminder ends
	}{
		{name: "before commit 1", block: "claimed", accepted: 1, row: "sent/"},
		{name: "claimed", block: "sending", accepted: 1, row: "sent/"},
		{
			name: "handed off, before content", script: smtptest.At(smtptest.StageDATA, smtptest.Stall()),
			reached: func(s *site) { s.wait("DATA", func() bool { return s.smtp.Reached(smtptest.StageDATA) > 0 }) },
			row:     "unknown/worker_lost",
		},
		{
			name: "content sent, not accepted", script: smtptest.At(smtptest.StageDot, smtptest.Stall().Refusing()),
			reached: func(s *site) { s.wait("the dot", func() bool { return s.smtp.Reached(smtptest.StageDot) > 0 }) },
			row:     "unknown/worker_lost",
		},
		{
			name: "content sent, accepted, before the reply", script: smtptest.At(smtptest.StageDot, smtptest.Stall().Accepting()),
			reached:  func(s *site) { s.wait("acceptance", func() bool { return len(s.smtp.Accepted()) > 0 }) },
			accepted: 1, row: "unknown/worker_lost",
		},
		{name: "after the 250, before commit 3", block: "sent", accepted: 1, row: "unknown/worker_lost"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, smtptest.Config{Script: tt.script})
			var held *locks
			if tt.block != "" {
				held = s.blockAt(tt.block)
			}
			s.due(1)
			p := s.start()
			if held != nil {
				held.waitHeld()
			} else {
				tt.reached(s)
			}
			p.kill()
			if held != nil {
				release(held)
			}
			s.start().ready()
			s.waitRows(tt.row, 1)
			// D08: ten more passes change nothing.
			for range 10 {
				s.exec(`SELECT nudged.touch('r-1')`)
				s.wait("a pass", func() bool {
					var woken int
					err := s.db.QueryRow(t.Context(), `SELECT count(*) FROM nudged.schedules WHERE wake_at = '-infinity'`).Scan(&woken)
					return err == nil && woken == 0
				})
			}
			if n := len(s.smtp.Accepted()); n != tt.accepted {
				t.Errorf("the server accepted %d messages, want %d", n, tt.accepted)
			}
			if rows := s.rows(); rows[tt.row] != 1 || len(rows) != 1 {
				t.Errorf("the ledger has %v, want one %s", rows, tt.row)
			}
		})
	}
}

// 500 due requests and three replicas, each killed with -9 and started again every second.
func TestKillStorm(t *testing.T) {
	const (
		requests = 500
		replicas = 3
		storm    = 30 * time.Second
	)
	s := newSite(t, smtptest.Config{Script: smtptest.Always(smtptest.StageDot, smtptest.Action{}.After(100*time.Millisecond))})
	s.rate = 8 // so that there is work to interrupt for as long as the storm lasts
	s.configure("")
	s.due(requests)

	end := time.Now().Add(storm)
	var killers sync.WaitGroup
	var mu sync.Mutex
	kills := 0
	for range replicas {
		killers.Go(func() {
			for time.Now().Before(end) {
				p := s.start()
				time.Sleep(time.Second) // the kills are the test: there is nothing to wait for
				p.kill()
				mu.Lock()
				kills++
				mu.Unlock()
			}
		})
	}
	killers.Wait()
	s.rate = 0
	s.configure("")
	s.start().ready()
	s.wait("every slot to end", func() bool {
		rows := s.rows()
		return rows["sent/"]+rows["unknown/worker_lost"]+rows["unknown/reply_lost"] == requests
	})
	rows := s.rows()
	unique := s.acceptedOnce()
	unknown := rows["unknown/worker_lost"] + rows["unknown/reply_lost"]
	t.Logf("%d kills, %d accepted, ledger %v", kills, len(s.smtp.Accepted()), rows)
	if accepted := len(s.smtp.Accepted()); accepted != unique {
		t.Errorf("%d messages accepted, only %d different ones", accepted, unique)
	}
	if unique < rows["sent/"] || unique > requests {
		t.Errorf("%d accepted, but %d rows say sent", unique, rows["sent/"])
	}
	// Each kill leaves at most one window unknown: two for each of four connections.
	if most := kills * 8; unknown > most {
		t.Errorf("%d unknown outcomes after %d kills, want at most %d", unknown, kills, most)
	}
}
