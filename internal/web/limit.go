package web

import (
	"net"
	"sync"
)

// limited is a listener with so many places: where all are taken, the next connection waits to be
// accepted until one is closed. The connections stay what TCP gives, so that an answer to a client
// that is thrown out can be ended by half a close and is not lost.
type limited struct {
	*net.TCPListener

	places chan struct{} // holds a token for each open connection
	closed chan struct{}
	close  func()
}

func newLimited(listener *net.TCPListener, places int) *limited {
	closed := make(chan struct{})
	return &limited{
		TCPListener: listener,
		places:      make(chan struct{}, places),
		closed:      closed,
		close:       sync.OnceFunc(func() { close(closed) }),
	}
}

// Accept implements net.Listener.
func (l *limited) Accept() (net.Conn, error) {
	select {
	case l.places <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	conn, err := l.AcceptTCP()
	if err != nil {
		<-l.places
		return nil, err
	}
	return &guest{TCPConn: conn, leave: sync.OnceFunc(func() { <-l.places })}, nil
}

// Close implements net.Listener.
func (l *limited) Close() error {
	l.close()
	return l.TCPListener.Close()
}

// guest is a connection that has a place.
type guest struct {
	*net.TCPConn

	leave func()
}

// Close implements net.Conn.
func (g *guest) Close() error {
	defer g.leave()
	return g.TCPConn.Close()
}
