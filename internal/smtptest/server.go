package smtptest

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
)

// Config says what the server is and offers.
type Config struct {
	// Addr is where to listen; empty: a free port of 127.0.0.1.
	Addr string
	// Extensions are the lines of the EHLO answer, STARTTLS and AUTH left out. nil: all that a
	// modern relay offers.
	Extensions []string
	// StartTLS offers STARTTLS; ImplicitTLS speaks TLS from the first byte.
	StartTLS, ImplicitTLS bool
	// Username and Password, where set, are asked for before MAIL, by the mechanisms Auth.
	Username, Password string
	// Auth are the mechanisms offered; nil: PLAIN and LOGIN.
	Auth []string
	// Script decides about answers; nil: a healthy server.
	Script Script
	// DiscardData forgets the data of messages once the script has seen it.
	DiscardData bool
}

// DefaultExtensions are the lines of the EHLO answer of a modern relay.
func DefaultExtensions() []string {
	return []string{"PIPELINING", "8BITMIME", "SMTPUTF8", "SIZE 10485760", "ENHANCEDSTATUSCODES"}
}

// Server is a scripted SMTP server. Its methods may be called by several goroutines at once.
type Server struct {
	cfg    Config
	tls    *tls.Config
	pool   *x509.CertPool
	script atomic.Pointer[Script]
	rec    *record
	wg     sync.WaitGroup

	closing sync.Once
	done    chan struct{} // closed by Close, before it looks for open connections

	addr     *net.TCPAddr
	mu       sync.Mutex // guards listener
	listener net.Listener
}

// Start starts a server that is closed at the end of the test.
func Start(tb testing.TB, cfg Config) *Server {
	tb.Helper()
	s, err := New(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(s.Close)
	return s
}

// New starts a server.
func New(cfg Config) (*Server, error) {
	cert, pool, err := newCertificate()
	if err != nil {
		return nil, err
	}
	if cfg.Extensions == nil {
		cfg.Extensions = DefaultExtensions()
	}
	if cfg.Auth == nil {
		cfg.Auth = []string{"PLAIN", "LOGIN"}
	}
	if cfg.Addr == "" {
		cfg.Addr = "127.0.0.1:0"
	}
	s := &Server{
		cfg:  cfg,
		tls:  &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12},
		pool: pool,
		rec:  newRecord(),
		done: make(chan struct{}),
	}
	s.SetScript(cfg.Script)
	if err := s.listen(cfg.Addr); err != nil {
		return nil, err
	}
	s.addr = s.listener.Addr().(*net.TCPAddr)
	return s, nil
}

// SetScript replaces the script; nil: a healthy server.
func (s *Server) SetScript(script Script) {
	if script == nil {
		script = func(Event) Action { return Action{} }
	}
	s.script.Store(&script)
}

// Addr returns host and port.
func (s *Server) Addr() string { return s.addr.String() }

// Host returns the address without the port.
func (s *Server) Host() string { return s.addr.IP.String() }

// Port returns the port.
func (s *Server) Port() int { return s.addr.Port }

// ClientTLS returns the configuration of a client that trusts this server.
func (s *Server) ClientTLS() *tls.Config {
	return &tls.Config{RootCAs: s.pool, MinVersion: tls.VersionTLS12}
}

// CertPool returns the pool that trusts this server.
func (s *Server) CertPool() *x509.CertPool { return s.pool }

func (s *Server) listen(addr string) error {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return fmt.Errorf("listen for SMTP: %w", err)
	}
	s.mu.Lock()
	s.listener = l
	s.mu.Unlock()
	s.wg.Go(func() { s.serve(l) })
	return nil
}

// StopListening refuses new connections until Listen; open ones stay.
func (s *Server) StopListening() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listener.Close()
}

// Listen takes connections again, at the same address.
func (s *Server) Listen() error { return s.listen(s.Addr()) }

func (s *Server) serve(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			continue
		}
		var session *session
		s.rec.update(func() {
			s.rec.conns++
			session = newSession(s, s.rec.conns, conn.(*net.TCPConn))
			s.rec.open[session.id] = session
		})
		s.wg.Go(func() {
			session.run()
			conn.Close()
			s.rec.update(func() { delete(s.rec.open, session.id) })
		})
	}
}

// CloseIdle says a last word (which may be empty) to the connections that are between two
// messages, such as "421 4.4.2 timeout", and closes them, as a server does after its idle limit.
func (s *Server) CloseIdle(farewell string) {
	for _, session := range s.sessions() {
		session.closeIdle(farewell)
	}
}

// CloseConnections breaks (RST) every open connection, as a crash of the server does.
func (s *Server) CloseConnections() {
	for _, session := range s.sessions() {
		session.reset()
	}
}

func (s *Server) sessions() []*session {
	s.rec.mu.Lock()
	defer s.rec.mu.Unlock()
	all := make([]*session, 0, len(s.rec.open))
	for _, session := range s.rec.open {
		all = append(all, session)
	}
	return all
}

// Close breaks every connection and waits until nothing is left.
func (s *Server) Close() {
	s.closing.Do(func() { close(s.done) })
	s.StopListening()
	s.CloseConnections()
	s.wg.Wait()
}
