package mailer

import (
	"slices"
	"sync"
	"time"
)

// pool keeps idle connections warm, the last used on top, so that those not needed grow old and
// go. It never opens one.
type pool struct {
	idleTimeout time.Duration
	maxAge      time.Duration
	maxMessages int

	mu       sync.Mutex
	idle     []*conn
	closed   bool
	retiring sync.WaitGroup // goodbyes being said; added to only while mu is held and closed is false
}

// take returns the connection used last, or nil.
func (p *pool) take() *conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.idle) == 0 {
		return nil
	}
	last := len(p.idle) - 1
	c := p.idle[last]
	p.idle = slices.Delete(p.idle, last, last+1)
	c.retire.Stop()
	return c
}

// put takes a connection that is between two messages. One that has done its part is retired.
func (p *pool) put(c *conn) {
	p.mu.Lock()
	left := min(p.idleTimeout, p.maxAge-time.Since(c.born))
	worn := left <= 0 || c.messages >= p.maxMessages
	switch {
	case p.closed:
		p.mu.Unlock()
		c.quit()
		return
	case worn:
		p.retiring.Go(c.quit)
	default:
		c.retire = time.AfterFunc(left, func() { p.expire(c) })
		p.idle = append(p.idle, c)
	}
	p.mu.Unlock()
}

// expire retires a connection that nobody took in time.
func (p *pool) expire(c *conn) {
	p.mu.Lock()
	i := slices.Index(p.idle, c)
	if i < 0 {
		p.mu.Unlock()
		return
	}
	p.idle = slices.Delete(p.idle, i, i+1)
	p.retiring.Go(c.quit)
	p.mu.Unlock()
}

// close retires every idle connection and waits until all are closed. Connections put back later
// are closed at once.
func (p *pool) close() {
	p.mu.Lock()
	for _, c := range p.idle {
		c.retire.Stop()
		p.retiring.Go(c.quit)
	}
	p.idle, p.closed = nil, true
	p.mu.Unlock()
	p.retiring.Wait()
}
