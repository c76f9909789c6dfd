package scheduler

import (
	"context"
	"math/rand/v2"
	"runtime"
	"slices"
	"time"
)

// How long a commit may take, and how long to wait between two tries of one that failed.
const (
	settleTimeout   = 15 * time.Second
	settlePause     = 250 * time.Millisecond
	settleForAtMost = 30 * time.Second // when the daemon stops and the database does not come back
)

// lingerForAtMost bounds the wait for deliveries that are about to end.
const lingerForAtMost = 100 * time.Millisecond

// settler is the one owner of commits 2 and 3: it hands off a small window of messages ahead of
// the deliveries and records the outcomes that gathered meanwhile, all in one commit.
type settler struct {
	s        *Scheduler
	draw     *rand.Rand
	window   int
	inWindow int             // handed off and not yet recorded
	leaving  int             // of those, gathered: the next commit records them
	waiting  []composed      // to be handed off
	gathered []delivered     // to be recorded
	ready    chan composed   // nil once closed
	outcomes chan delivered  // nil once closed
	signal   <-chan struct{} // nil once seen
	took     time.Duration   // how long the last commit took
	pace     time.Duration   // how long the last deliveries took, about; 0: none has ended
	failing  time.Time       // since when commits fail; zero: they succeed
	closed   bool            // nothing more will be handed off
	told     fault
}

// settleAll runs until every claim that this process won is either recorded or given back.
func (s *Scheduler) settleAll(ctx context.Context) {
	w := &settler{
		s:        s,
		draw:     rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())),
		window:   windowPerWorker * s.cfg.Workers,
		ready:    s.ready,
		outcomes: s.outcomes,
		signal:   ctx.Done(),
	}
	// The context of the commits outlives the signal: an outcome that is known is recorded.
	commits := context.WithoutCancel(ctx)
	for w.gather() {
		w.giveBack()
		w.commit(commits)
	}
}

// gather waits for something to do, lets come what is about to, and takes all that is there. It is
// false when all is done.
func (w *settler) gather() bool {
	for len(w.waiting) == 0 && len(w.gathered) == 0 {
		if w.ready == nil && !w.closed {
			w.closed = true
			close(w.s.handed)
		}
		if w.outcomes == nil {
			return false
		}
		select {
		case c, ok := <-w.readyIfRoom():
			w.gotReady(c, ok)
		case d, ok := <-w.outcomes:
			w.gotOutcome(d, ok)
		case <-w.signal:
			w.signal = nil
		}
	}
	if w.quick() {
		w.linger()
	} else {
		runtime.Gosched() // who has something for this commit as well gets the chance to say so
	}
	for {
		select {
		case c, ok := <-w.readyIfRoom():
			w.gotReady(c, ok)
		case d, ok := <-w.outcomes:
			w.gotOutcome(d, ok)
		case <-w.signal:
			w.signal = nil
		default:
			return true
		}
	}
}

// linger waits for most of what is being delivered, because a commit costs hardly more for a whole
// window than for one message. It does so for no longer than a commit takes. What is composed stays where
// it is meanwhile, so that composing goes on during the commit and not beside the deliveries.
func (w *settler) linger() {
	few := w.window / (4 * windowPerWorker)
	patience := time.NewTimer(min(w.took, lingerForAtMost))
	defer patience.Stop()
	for w.signal != nil && w.inWindow-w.leaving > few {
		select {
		case d, ok := <-w.outcomes:
			w.gotOutcome(d, ok)
		case <-w.signal:
			w.signal = nil
		case <-patience.C:
			return
		}
	}
}

// quick tells whether a whole window is delivered in less time than a commit takes. Slower deliveries go
// on during the commit, and waiting for them would only delay it.
func (w *settler) quick() bool { return w.pace > 0 && windowPerWorker*w.pace < w.took }

// readyIfRoom is the channel of composed messages while the window has room for one, else nil. What
// the same commit records makes room in it: before and after it no more than a window is sending.
// After the signal there is always room: nothing is handed off any more, all is given back.
func (w *settler) readyIfRoom() chan composed {
	if w.signal != nil && w.inWindow-w.leaving+len(w.waiting) >= w.window {
		return nil
	}
	return w.ready
}

func (w *settler) gotReady(c composed, ok bool) {
	if ok {
		w.waiting = append(w.waiting, c)
		return
	}
	w.ready = nil
}

func (w *settler) gotOutcome(d delivered, ok bool) {
	if ok {
		w.gathered = append(w.gathered, d)
		if d.handedOff {
			w.leaving++
			if w.pace == 0 {
				w.pace = d.took
			}
			w.pace += (d.took - w.pace) / 16
		}
		return
	}
	w.outcomes = nil
}

// giveBack returns what is not handed off when it cannot be sent: the daemon stops, or the relay
// is unwell. No attempt is burnt.
func (w *settler) giveBack() {
	reason := ReasonShutdown
	if w.signal != nil {
		if w.s.gate.isOpen() {
			return
		}
		reason = ReasonRelayRefused
	}
	for _, c := range w.waiting {
		w.gathered = append(w.gathered, delivered{task: c.task, outcome: Outcome{State: StateDeferred, Reason: reason}})
	}
	w.waiting = nil
}

// commit makes one commit of everything at hand and tries it again until it succeeds: both halves
// are safe to repeat. What was handed off goes on to the deliveries.
func (w *settler) commit(ctx context.Context) {
	batch := Batch{Lease: w.s.cfg.Lease}
	for _, d := range w.gathered {
		batch.Settlements = append(batch.Settlements, w.s.settlement(d, w.draw))
	}
	for _, c := range w.waiting {
		batch.HandOffs = append(batch.HandOffs, HandOff{
			ClaimID: c.task.ClaimID, RequestID: c.task.Request.ID, LinkCreatedAt: c.task.Link.CreatedAt,
			Slot: c.task.Slot.Name, Recipient: c.task.Request.RecipientEmail,
			To: c.message.To, MessageID: c.message.MessageID,
		})
	}
	begun := time.Now()
	settleCtx, cancel := context.WithTimeout(ctx, settleTimeout)
	results, err := w.s.cfg.Store.Settle(settleCtx, batch)
	cancel()
	if err != nil {
		w.failed(err)
		return
	}
	w.took = time.Since(begun)
	if !w.failing.IsZero() {
		w.failing = time.Time{}
		w.told.over()
		w.s.log.Info("outcomes are recorded again")
	}
	w.recorded()
	w.handedOff(results)
}

// failed keeps everything for the next try. The same failure is logged once. A stopping daemon
// whose database does not come back gives up: what it does not record becomes unknown by the lease.
func (w *settler) failed(err error) {
	if w.told.worthSaying(err, time.Now()) {
		w.s.log.Error("outcomes cannot be recorded now; they are kept", "err", err)
	}
	if w.failing.IsZero() {
		w.failing = time.Now()
	}
	if w.signal == nil && time.Since(w.failing) > settleForAtMost {
		w.giveUp(err)
		return
	}
	time.Sleep(settlePause)
}

// giveUp leaves what is gathered to the leases: what was delivered becomes unknown, the rest is tried again
// unless its hand-off was committed after all.
func (w *settler) giveUp(err error) {
	if w.leaving > 0 {
		w.s.log.Error("outcomes are not recorded: they will be unknown", "count", w.leaving, "err", err)
	}
	if claims := len(w.gathered) - w.leaving; claims > 0 {
		w.s.log.Warn("claims are not given back: they are left to their leases", "count", claims, "err", err)
	}
	w.s.flights.lose(w.leaving)
	w.recorded()
}

// recorded forgets the claims whose end is in the ledger.
func (w *settler) recorded() {
	for _, d := range w.gathered {
		w.s.flights.remove(d.task.ClaimID)
		if d.handedOff {
			w.inWindow--
		}
		if d.handedOff || d.outcome.State == StateFailed {
			w.s.metrics.sends.WithLabelValues(string(d.outcome.State)).Inc()
		}
	}
	w.gathered, w.leaving = w.gathered[:0], 0
}

func (w *settler) handedOff(results []HandOffResult) {
	verdicts := make(map[ClaimID]HandOffResult, len(results))
	for _, r := range results {
		verdicts[r.ClaimID] = r
	}
	for _, c := range w.waiting {
		verdict, ours := verdicts[c.task.ClaimID]
		switch {
		case !ours: // the lease was lost, and whoever has it now goes on from there
			w.s.flights.remove(c.task.ClaimID)
		case verdict.Reason == "":
			w.inWindow++
			w.s.handed <- c
		default:
			w.s.flights.remove(c.task.ClaimID)
			w.s.noteRefusal(c.task, verdict)
		}
	}
	w.waiting = w.waiting[:0]
}

// noteRefusal counts a reminder that the hand-off did not let go.
func (s *Scheduler) noteRefusal(task Task, verdict HandOffResult) {
	state := StateSkipped
	if slices.Contains(SkipReasons(), verdict.Reason) {
		s.metrics.skipped.WithLabelValues(string(verdict.Reason)).Inc()
	} else {
		state = StateDeferred
	}
	log := s.log.With("request_id", task.Request.ID, "slot", task.Slot.Name,
		"link_created_at", task.Link.CreatedAt, "attempt", task.Attempt, "outcome", state, "reason", verdict.Reason)
	if verdict.Err != nil {
		log.Warn("not handed off; the claim is left to its lease", "err", verdict.Err)
		return
	}
	log.Info("not handed off")
}
