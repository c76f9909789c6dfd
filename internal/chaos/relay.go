//go:build chaos

package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"time"

	"nudged/internal/smtptest"
)

// relay is the mail server and what it does to those who talk to it.
type relay struct {
	server *smtptest.Server
	seed   uint64
	tally  *tally

	mu       sync.Mutex
	well     bool                 // it does nothing wrong any more
	weather  smtptest.Script      // what befalls everybody now; nil: nothing
	seen     map[string]int       // transactions of each recipient
	grey     map[string]time.Time // until when a recipient is greylisted
	plans    map[int]injury       // what will befall the transaction on a connection
	injuries []injury             // what did befall transactions
	resets   []span
}

// injury is what befalls one transaction.
type injury struct {
	what      string
	stage     smtptest.Stage
	action    smtptest.Action
	silencing bool // no readable answer to the final dot comes in time
	recipient string
	at        time.Time
}

func newRelay(seed uint64, tally *tally) (*relay, error) {
	r := &relay{
		seed: seed, tally: tally,
		seen: map[string]int{}, grey: map[string]time.Time{}, plans: map[int]injury{},
	}
	// Below the ports that systems hand out for outgoing connections: it has to be free again after
	// a while of not listening.
	const lowest, highest, tries = 10000, 15000, 100
	draw := rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
	var err error
	for range tries {
		port := lowest + draw.IntN(highest-lowest)
		r.server, err = smtptest.New(smtptest.Config{
			Addr:     net.JoinHostPort("127.0.0.1", strconv.Itoa(port)),
			Username: "nudged", Password: markPassword + "-smtp", Script: r.script,
		})
		if err == nil {
			return r, nil
		}
	}
	return nil, fmt.Errorf("start the mail server: %w", err)
}

// heal makes it a healthy server.
func (r *relay) heal() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.well = true
}

func (r *relay) choices() []choice {
	const most = 1500 * time.Millisecond
	least := most / 10
	return []choice{
		{do: "refuse connections", weight: 2, least: least, most: most},
		{do: "not listening", weight: 3, least: least, most: most},
		{do: "crash", weight: 2, least: least, most: most},
		{do: "silent at connect", weight: 1, least: least, most: most},
		{do: "garbage at connect", weight: 1, least: least, most: most},
		{do: "silent at EHLO", weight: 1, least: least, most: most},
		{do: "hangup at EHLO", weight: 1, least: least, most: most},
		{do: "refuse AUTH", weight: 1, least: least, most: most},
		{do: "421 at MAIL", weight: 2, least: least, most: most},
		{do: "close idle connections", weight: 3},
		{do: "reset connections", weight: 2},
	}
}

// do plays one step.
func (r *relay) do(ctx context.Context, s step) error {
	r.tally.add("mail server: " + s.do)
	at := func(stage smtptest.Stage, a smtptest.Action) {
		r.setWeather(smtptest.Always(stage, a))
		pause(ctx, s.lasts)
		r.setWeather(nil)
	}
	switch s.do {
	case "not listening", "crash":
		r.server.StopListening()
		if s.do == "crash" {
			r.reset()
		}
		pause(ctx, s.lasts)
		return persist(context.WithoutCancel(ctx), r.server.Listen)
	case "close idle connections":
		r.server.CloseIdle("421 4.4.2 idle for too long")
	case "reset connections":
		r.reset()
	case "refuse connections":
		at(smtptest.StageConnect, smtptest.Answer("554 5.3.2 not today").ThenHangup())
	case "silent at connect":
		at(smtptest.StageConnect, smtptest.Stall())
	case "garbage at connect":
		at(smtptest.StageConnect, smtptest.Raw("\x00\xff\x01 what?\r\n"))
	case "silent at EHLO":
		at(smtptest.StageEHLO, smtptest.Stall())
	case "hangup at EHLO":
		at(smtptest.StageEHLO, smtptest.Hangup())
	case "refuse AUTH":
		at(smtptest.StageAUTH, smtptest.Answer("454 4.7.0 cannot check passwords now"))
	default:
		at(smtptest.StageMAIL, smtptest.Answer("421 4.3.2 going down").ThenHangup())
	}
	return nil
}

func (r *relay) reset() {
	begun := time.Now()
	r.server.CloseConnections()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.resets = append(r.resets, span{what: "reset connections", from: begun, to: time.Now()})
}

func (r *relay) setWeather(script smtptest.Script) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.weather = script
}

// script decides about each answer of the server.
func (r *relay) script(e smtptest.Event) smtptest.Action {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.well {
		return smtptest.Action{}
	}
	if r.weather != nil {
		if a := r.weather(e); a != (smtptest.Action{}) {
			return a
		}
	}
	switch e.Stage {
	case smtptest.StageMAIL:
		delete(r.plans, e.Conn)
		return r.atMAIL(e)
	case smtptest.StageRCPT:
		return r.atRCPT(e)
	case smtptest.StageDATA, smtptest.StageBody, smtptest.StageDot:
		return r.befall(e)
	default:
		return smtptest.Action{}
	}
}

// atMAIL hurts some transactions before their recipient is known.
func (r *relay) atMAIL(e smtptest.Event) smtptest.Action {
	r.seen[fmt.Sprint(e.Conn)]++
	draw := newDraw(r.seed, fmt.Sprintf("mail %d %d", e.Conn, r.seen[fmt.Sprint(e.Conn)]))
	const share = 0.04
	if draw.Float64() > share {
		return smtptest.Action{}
	}
	all := injuriesBefore()
	in := all[draw.IntN(len(all))]
	r.tally.add("MAIL: " + in.what)
	return in.action
}

// atRCPT draws what will befall this transaction: the same for equal seeds, recipients and tries.
func (r *relay) atRCPT(e smtptest.Event) smtptest.Action {
	recipient := e.Message.To[len(e.Message.To)-1]
	r.seen[recipient]++
	draw := newDraw(r.seed, fmt.Sprintf("rcpt %s %d", recipient, r.seen[recipient]))
	if a, greylisted := r.greylist(recipient, draw); greylisted {
		return a
	}
	in := drawInjury(draw)
	in.recipient = recipient
	r.plans[e.Conn] = in
	return r.befall(e)
}

// greylist turns a share of the recipients away for the first seconds.
func (r *relay) greylist(recipient string, draw *rand.Rand) (smtptest.Action, bool) {
	const share = 0.15
	if r.seen[recipient] == 1 && draw.Float64() < share {
		r.grey[recipient] = time.Now().Add(between(draw, time.Second, 5*time.Second))
	}
	if time.Now().After(r.grey[recipient]) {
		return smtptest.Action{}, false
	}
	r.tally.add("RCPT: greylisted")
	return smtptest.Answer("450 4.2.0 <" + recipient + "> greylisted, come back"), true
}

// befall plays what was drawn for this transaction if its stage has come.
func (r *relay) befall(e smtptest.Event) smtptest.Action {
	in, planned := r.plans[e.Conn]
	if !planned || in.stage != e.Stage {
		return smtptest.Action{}
	}
	in.at = time.Now()
	r.injuries = append(r.injuries, in)
	r.tally.add(fmt.Sprintf("%s: %s", in.stage, in.what))
	return in.action
}
