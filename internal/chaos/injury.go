//go:build chaos

package chaos

import (
	"math/rand/v2"
	"time"

	"nudged/internal/smtptest"
)

// garbage is an answer that nobody can read.
const garbage = "\x7f\x00 ?!? not SMTP\r\n"

// tooLate is later than the daemon waits for the answer to the final dot.
const tooLate = replyTimeout + replyTimeout/2

// injuriesBefore are what may befall a transaction at MAIL: nothing can be accepted.
func injuriesBefore() []injury {
	return []injury{
		{what: "450", action: smtptest.Answer("450 4.7.1 not now")},
		{what: "stall", action: smtptest.Stall()},
		{what: "hangup", action: smtptest.Hangup()},
		{what: "reset", action: smtptest.Reset()},
		{what: "garbage", action: smtptest.Raw(garbage)},
	}
}

// injuries are what may befall a transaction later. What comes at the dot is certain for the server: it has
// accepted or it has not, whatever it says and whether it says it.
func injuries() []injury {
	return []injury{
		{stage: smtptest.StageRCPT, what: "550", action: smtptest.Answer("550 5.7.1 we do not like you")},
		{stage: smtptest.StageRCPT, what: "550 5.1.1", action: smtptest.Answer("550 5.1.1 <somebody@" + markAddress + "> unknown")},
		{stage: smtptest.StageRCPT, what: "stall", action: smtptest.Stall()},
		{stage: smtptest.StageRCPT, what: "hangup", action: smtptest.Hangup()},
		{stage: smtptest.StageRCPT, what: "reset", action: smtptest.Reset()},
		{stage: smtptest.StageRCPT, what: "garbage", action: smtptest.Raw(garbage)},
		{stage: smtptest.StageRCPT, what: "late", action: smtptest.Action{}.After(tooLate)},

		{stage: smtptest.StageDATA, what: "451", action: smtptest.Answer("451 4.3.0 disk full")},
		{stage: smtptest.StageDATA, what: "554", action: smtptest.Answer("554 5.5.1 no valid recipients")},
		{stage: smtptest.StageDATA, what: "stall", action: smtptest.Stall()},
		{stage: smtptest.StageDATA, what: "hangup", action: smtptest.Hangup()},
		{stage: smtptest.StageDATA, what: "garbage", action: smtptest.Raw(garbage)},

		{stage: smtptest.StageBody, what: "stall", action: smtptest.Stall(), silencing: true},
		{stage: smtptest.StageBody, what: "hangup", action: smtptest.Hangup(), silencing: true},
		{stage: smtptest.StageBody, what: "reset", action: smtptest.Reset(), silencing: true},

		{stage: smtptest.StageDot, what: "554", action: smtptest.Answer("554 5.7.1 looks like spam")},
		{stage: smtptest.StageDot, what: "451", action: smtptest.Answer("451 4.3.0 try again")},
		{stage: smtptest.StageDot, what: "421", action: smtptest.Answer("421 4.3.2 going down").ThenHangup()},
		{stage: smtptest.StageDot, what: "accept, then hangup", action: smtptest.Answer("250 2.0.0 ok").ThenHangup()},
		{stage: smtptest.StageDot, what: "accept, then reset", action: smtptest.Answer("250 2.0.0 ok").ThenReset(), silencing: true},
		{stage: smtptest.StageDot, what: "accept and hang up", action: smtptest.Hangup().Accepting(), silencing: true},
		{stage: smtptest.StageDot, what: "accept and reset", action: smtptest.Reset().Accepting(), silencing: true},
		{stage: smtptest.StageDot, what: "accept and stall", action: smtptest.Stall().Accepting(), silencing: true},
		{stage: smtptest.StageDot, what: "accept and talk nonsense", action: smtptest.Raw(garbage).Accepting(), silencing: true},
		{stage: smtptest.StageDot, what: "accept, answer cut short", action: smtptest.Raw("25").ThenHangup().Accepting(), silencing: true},
		{stage: smtptest.StageDot, what: "accept, answer too late", action: smtptest.Answer("250 2.0.0 ok").After(tooLate), silencing: true},
		{stage: smtptest.StageDot, what: "refuse and hang up", action: smtptest.Hangup().Refusing(), silencing: true},
		{stage: smtptest.StageDot, what: "refuse and reset", action: smtptest.Reset().Refusing(), silencing: true},
		{stage: smtptest.StageDot, what: "refuse and stall", action: smtptest.Stall().Refusing(), silencing: true},
		{stage: smtptest.StageDot, what: "refuse and talk nonsense", action: smtptest.Raw(garbage).Refusing(), silencing: true},
		{stage: smtptest.StageDot, what: "refuse, answer too late", action: smtptest.Answer("554 5.7.1 no").After(tooLate), silencing: true},
	}
}

// drawInjury draws what will befall one transaction. Most go well, a part of them slowly: those are
// what kills, stops and outages meet in flight.
func drawInjury(draw *rand.Rand) injury {
	const (
		hurt, slow = 0.3, 0.35 // shares
		slowest    = 800 * time.Millisecond
	)
	switch chance := draw.Float64(); {
	case chance < hurt:
		all := injuries()
		return all[draw.IntN(len(all))]
	case chance < hurt+slow:
		wait := between(draw, slowest/8, slowest)
		return injury{stage: smtptest.StageDot, what: "accept slowly", action: smtptest.Action{}.After(wait)}
	default:
		return injury{}
	}
}
