package mailer_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"nudged/internal/smtptest"
	"nudged/mailer"
	"nudged/scheduler"
)

// TestChaos: whatever a server does, at random, at every stage: sent means accepted, deferred and
// failed mean not accepted, and no message is accepted more than once.
func TestChaos(t *testing.T) {
	for _, mode := range []mailer.TLSMode{mailer.TLSNone, mailer.TLSMandatory} {
		for _, extensions := range [][]string{nil, {"SIZE"}} {
			t.Run(fmt.Sprint(mode, extensions), func(t *testing.T) {
				t.Parallel()
				chaos(t, mode, extensions)
			})
		}
	}
}

func chaos(t *testing.T, mode mailer.TLSMode, extensions []string) {
	const workers, each = 8, 100
	srv := smtptest.Start(t, smtptest.Config{Extensions: extensions, StartTLS: true, Script: mischief})
	cfg := local(srv)
	cfg.TLS = mode
	cfg.DialTimeout, cfg.CommandTimeout, cfg.ReplyTimeout = short, short, short
	cfg.IdleTimeout = 5 * time.Millisecond
	m := newMailer(t, cfg)

	var mu sync.Mutex
	outcomes := make(map[string]scheduler.Outcome)
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := range each {
				to := fmt.Sprintf("%d-%d@example.net", w, i)
				got := deliver(t, m, plainMessage(to))
				mu.Lock()
				outcomes[to] = got
				mu.Unlock()
			}
		})
	}
	wg.Wait()

	accepted := make(map[string]int)
	for _, m := range srv.Accepted() {
		accepted[m.To[0]]++
	}
	states := make(map[scheduler.State]int)
	for to, got := range outcomes {
		states[got.State]++
		switch n := accepted[to]; {
		case n > 1:
			t.Errorf("accepted %d times: %+v", n, got)
		case got.State == sent && n == 0, (got.State == deferred || got.State == failed) && n == 1:
			t.Errorf("accepted %d times, but said to be %+v", n, got)
		}
	}
	t.Logf("%d accepted over %d connections; outcomes %v", len(accepted), srv.Connections(), states)
}

// mischief does something wrong at one stage in twenty.
func mischief(e smtptest.Event) smtptest.Action {
	if rand.IntN(20) > 0 {
		return smtptest.Action{}
	}
	if e.Stage == smtptest.StageBody { // whatever is said here is read as the answer to the dot
		return []smtptest.Action{smtptest.Hangup(), smtptest.Reset()}[rand.IntN(2)]
	}
	actions := []smtptest.Action{
		smtptest.Hangup(), smtptest.Reset(), smtptest.Hangup().Accepting(), smtptest.Reset().Accepting(),
		smtptest.Answer("421 4.3.2 bye").ThenHangup(), smtptest.Answer("451 4.3.0 later"), smtptest.Answer("550 5.1.1 no"),
		smtptest.Answer("451 4.3.0 later").ThenHangup(), smtptest.Answer("550 5.1.1 no").ThenReset(),
		smtptest.Answer("250 2.0.0 ok").ThenHangup(), smtptest.Answer("251 fine"), smtptest.Answer("354 more"),
		smtptest.Raw("hello\r\n"), smtptest.Raw("25").ThenHangup().Accepting(), smtptest.Raw("250-ok\r\n").ThenHangup().Accepting(),
	}
	if rand.IntN(10) == 0 {
		actions = []smtptest.Action{smtptest.Stall(), smtptest.Stall().Accepting()}
	}
	return actions[rand.IntN(len(actions))]
}
