package main_test

import (
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"nudged/internal/smtptest"
)

// wire lies between a daemon and its database and can be cut.
type wire struct {
	listener net.Listener
	target   string

	mu      sync.Mutex
	cut     bool // nobody gets through
	silent  bool // and nobody is told: packets vanish
	conns   []net.Conn
	carries sync.WaitGroup
}

// throughWire puts a wire before the site's database.
func (s *site) throughWire() *wire {
	s.t.Helper()
	at, err := url.Parse(s.url)
	if err != nil {
		s.t.Fatal(err)
	}
	w := &wire{target: at.Host}
	if w.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		s.t.Fatal(err)
	}
	at.Host = w.listener.Addr().String()
	s.url = at.String()
	w.carries.Go(w.accept)
	s.t.Cleanup(func() {
		_ = w.listener.Close()
		w.closeAll()
		w.carries.Wait()
	})
	return w
}

func (w *wire) accept() {
	for {
		client, err := w.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", w.target)
		w.mu.Lock()
		dead := err != nil || w.cut && !w.silent
		if !dead {
			w.conns = append(w.conns, client, server)
		}
		w.mu.Unlock()
		if dead {
			_ = client.Close()
			if err == nil {
				_ = server.Close()
			}
			continue
		}
		w.carries.Go(func() { w.carry(client, server) })
		w.carries.Go(func() { w.carry(server, client) })
	}
}

func (w *wire) carry(from, to net.Conn) {
	defer to.Close()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if w.isCut() {
			_, _ = io.Copy(io.Discard, from) // lost, until somebody gives up
			return
		}
		if _, failed := to.Write(buffer[:n]); err != nil || failed != nil {
			return
		}
	}
}

func (w *wire) isCut() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.cut
}

func (w *wire) sever(silent bool) {
	w.mu.Lock()
	w.cut, w.silent = true, silent
	w.mu.Unlock()
	if !silent {
		w.closeAll()
	}
}

func (w *wire) mend() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = false
}

func (w *wire) closeAll() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, conn := range w.conns {
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // a reset, and no farewell
		}
		_ = conn.Close()
	}
	w.conns = nil
}

// The network between the daemon and its database is cut in the middle of 300 due mails: with resets,
// and so that packets only vanish. The daemon stays up, all is recorded, and nothing is sent twice.
func TestNetworkCut(t *testing.T) {
	for name, silent := range map[string]bool{"with resets": false, "silently": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const due, away = 300, 6 * time.Second
			s := newSite(t, smtptest.Config{})
			s.rate = 100
			s.writeLease("30s")
			w := s.throughWire()
			s.due(due)
			p := s.start().ready()
			s.wait("60 messages", func() bool { return len(s.smtp.Accepted()) >= 60 })
			w.sever(silent)
			time.Sleep(away) // the cut itself: nothing happens that could be waited for
			if status, _ := p.get("/-/healthy"); status != http.StatusOK {
				t.Errorf("/-/healthy answers %d in a short cut, want 200", status)
			}
			w.mend()
			// In silence a pass is given up after half a minute, and it takes a while from then on.
			s.wait("sending to go on", func() bool { return s.rows()["sent/"] >= due/2 })
			s.waitRows("sent/", due)
			if n := s.acceptedOnce(); n != due || len(s.smtp.Accepted()) != due {
				t.Errorf("the server accepted %d messages, %d different ones; want %d", len(s.smtp.Accepted()), n, due)
			}
			p.ready().stop()
		})
	}
}

// writeLease gives the configuration another lease.
func (s *site) writeLease(lease string) {
	s.t.Helper()
	s.configure("")
	s.writeConfig(strings.Replace(s.readConfig(), "lease: 2s", "lease: "+lease, 1))
}
