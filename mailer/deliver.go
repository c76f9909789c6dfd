package mailer

import (
	"context"
	"fmt"
	"time"

	"nudged/scheduler"
)

// transaction is one message on its way over one connection.
type transaction struct {
	*conn
	ctx      context.Context //nolint:containedctx // a transaction is one call
	unwatch  func() bool     // stops ctx from closing the socket; false: it has ended
	msg      scheduler.Message
	nonASCII bool // it has bytes above 0x7f
	notAfter time.Time
	command  time.Duration // how long the relay may take to answer a command,
	final    time.Duration // and the final dot
}

// result is an outcome and what it means for the connection.
type result struct {
	outcome scheduler.Outcome
	then    then
	stale   bool // the relay had given the connection up before MAIL; nothing was sent
}

// then says where a transaction leaves the connection.
type then int

const (
	thenClose then = iota // in doubt
	thenReset             // in a transaction, which RSET ends
	thenKeep              // between two messages
)

// transact speaks one transaction, and keeps or closes the connection. Until the final dot the end
// of ctx ends it at once, by closing the socket under whatever is going on.
func (m *Mailer) transact(ctx context.Context, c *conn, msg scheduler.Message, notAfter time.Time) result {
	t := &transaction{
		conn: c, ctx: ctx, msg: msg, nonASCII: !ascii(msg.Data), notAfter: notAfter,
		unwatch: context.AfterFunc(ctx, c.kill),
		command: m.cfg.CommandTimeout, final: m.cfg.ReplyTimeout,
	}
	c.messages++
	r := t.run()
	healthy := r.then == thenKeep || r.then == thenReset && c.reset()
	if t.unwatch(); healthy && ctx.Err() == nil {
		m.pool.put(c)
	} else {
		c.kill()
	}
	return r
}

func (t *transaction) run() result {
	if refusal, bad := t.unsendable(); bad {
		return result{outcome: refusal, then: thenKeep}
	}
	if r, ended := t.envelope(); ended {
		return r
	}
	return t.content()
}

// unsendable refuses what this relay has said at EHLO that it cannot take. Nothing is sent.
func (t *transaction) unsendable() (scheduler.Outcome, bool) {
	size := int64(len(t.msg.Data))
	switch {
	case t.msg.UTF8 && !t.utf8:
		return refuseLocally(scheduler.ReasonInvalidAddress, "the address needs SMTPUTF8, which the relay does not offer"), true
	case t.maxSize > 0 && size > t.maxSize:
		return refuseLocally(scheduler.ReasonMessageRefused, fmt.Sprintf("message of %d bytes, the relay takes %d", size, t.maxSize)), true
	case t.nonASCII && !t.eightBit:
		return refuseLocally(scheduler.ReasonMessageRefused, "the message needs 8BITMIME, which the relay does not offer"), true
	}
	return scheduler.Outcome{}, false
}

// step is one command of the envelope.
type step struct {
	phase phase
	line  string
}

func (t *transaction) steps() []step {
	mail := "MAIL FROM:" + path(t.msg.From)
	if t.declareSize {
		mail += fmt.Sprintf(" SIZE=%d", len(t.msg.Data))
	}
	if t.nonASCII {
		mail += " BODY=8BITMIME"
	}
	if t.msg.UTF8 {
		mail += " SMTPUTF8"
	}
	rcpt := "RCPT TO:" + path(t.msg.To)
	if t.dsn {
		mail += " RET=HDRS"
		rcpt += " NOTIFY=FAILURE"
	}
	return []step{
		{phaseMAIL, mail + "\r\n"},
		{phaseRCPT, rcpt + "\r\n"},
		{phaseDATA, "DATA\r\n"},
	}
}

// envelope speaks MAIL, RCPT and DATA, in one write where the relay offers PIPELINING (RFC 2920).
// It reports whether the transaction has ended; if not, the relay waits for the content.
func (t *transaction) envelope() (ended result, over bool) {
	steps := t.steps()
	if t.pipelining {
		if err := t.write(steps[0].line+steps[1].line+steps[2].line, t.command); err != nil {
			return t.lost(phaseMAIL, err), true
		}
	}
	for _, s := range steps {
		if !t.pipelining {
			if err := t.write(s.line, t.command); err != nil {
				return t.lost(s.phase, err), true
			}
		}
		r, err := t.read(s.phase, t.command)
		switch {
		case err != nil && over: // the relay has decided; only the connection is lost
			ended.then = thenClose
		case err != nil:
			return t.lost(s.phase, err), true
		case wanted(s.phase, r):
			if over && s.phase == phaseDATA { // it takes a body for nobody: never end that with a dot
				ended.then = thenClose
			}
		case !over:
			ended, over = t.refused(s.phase, r), true
		}
		if over && (!t.pipelining || ended.then == thenClose) {
			break
		}
	}
	return ended, over
}

// content sends the message and the final dot, and waits for the answer.
func (t *transaction) content() result {
	if t.ctx.Err() != nil {
		return result{outcome: interrupted()}
	}
	if time.Now().After(t.notAfter) {
		return result{outcome: leaseLost()}
	}
	if err := t.raw.SetDeadline(time.Now().Add(t.bodyTimeout())); err != nil {
		return t.lost(phaseBody, err)
	}
	begin, end := t.encode()
	if _, err := t.client.Text.W.Write(begin); err != nil {
		return t.lost(phaseBody, err)
	}
	if !t.unwatch() {
		return result{outcome: interrupted()}
	}
	if time.Now().After(t.notAfter) { // frozen meanwhile, perhaps: without the dot nothing is accepted
		return result{outcome: leaseLost()}
	}
	// The rest of the body leaves together with the dot. An error means that the dot did not leave.
	if _, err := t.client.Text.W.Write(end); err != nil {
		return t.lost(phaseBody, err)
	}
	if err := t.client.Text.W.Flush(); err != nil {
		return t.lost(phaseBody, err)
	}
	r, err := t.read(phaseDot, t.final)
	if err != nil {
		return result{outcome: withoutAnswer(phaseDot, loss(phaseDot, err, t.final))}
	}
	answered := t.refused(phaseDot, r)
	if r.code == 250 || answered.then == thenReset {
		answered.then = thenKeep
	}
	return answered
}

// encode returns the content in two parts, the second of which ends with the dot.
func (t *transaction) encode() (begin, end []byte) {
	t.out = appendContent(t.out[:0], t.msg.Data)
	split := max(0, len(t.out)-lastWrite)
	begin, end = t.out[:split], t.out[split:]
	if cap(t.out) > keptBuffer {
		t.out = nil
	}
	return begin, end
}

// bodyTimeout grows with the size: slowestRate is not worth waiting for.
func (t *transaction) bodyTimeout() time.Duration {
	const slowestRate = 8 << 10 // bytes a second
	return t.command + time.Duration(len(t.msg.Data)/slowestRate)*time.Second
}

// refused is the result of an answer that ends the transaction.
func (t *transaction) refused(p phase, r reply) result {
	ended := result{outcome: classify(p, r), stale: p == phaseMAIL && stale(r)}
	if class := r.class(); r.code != 421 && (class == 4 || class == 5) {
		ended.then = thenReset
	}
	return ended
}

// lost is the result of a connection that failed before the final dot.
func (t *transaction) lost(p phase, err error) result {
	if t.ctx.Err() != nil {
		return result{outcome: interrupted()}
	}
	return result{outcome: withoutAnswer(p, loss(p, err, t.command)), stale: p == phaseMAIL}
}

// leaseLost is the outcome of a delivery that came too late to begin.
func leaseLost() scheduler.Outcome {
	return scheduler.Outcome{
		State: scheduler.StateDeferred, Reason: scheduler.ReasonLeaseLost,
		SMTPReply: "the lease ended before the content was sent",
	}
}
