package web

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
)

// Where all places are taken, the next connection waits for one, and an end of the listener ends
// that wait.
func TestPlacesOfAListener(t *testing.T) {
	tcp, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	listener := newLimited(tcp, 2)
	accepted, ended := make(chan net.Conn), make(chan error, 1)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				ended <- err
				return
			}
			accepted <- conn
		}
	}()
	for range 3 {
		client, err := net.Dial("tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
	}
	first, second := <-accepted, <-accepted
	select {
	case <-accepted:
		t.Error("a third connection is accepted")
	default:
	}
	if len(listener.places) != 2 {
		t.Errorf("%d places taken, want 2", len(listener.places))
	}
	first.Close()
	first.Close() // net/http closes twice now and then: that frees one place
	third := <-accepted
	if len(listener.places) != 2 {
		t.Errorf("%d places taken, want 2", len(listener.places))
	}
	listener.Close()
	listener.Close()
	if err := <-ended; !errors.Is(err, net.ErrClosed) {
		t.Errorf("ended with %v", err)
	}
	second.Close()
	third.Close()
}

// Those who ask at the same time whether all is ready share one answer, and the next one asks anew.
func TestReadyIsAskedOnceForMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := new(program).config()
		asked, release := 0, make(chan struct{})
		cfg.Ready = func() error {
			asked++
			<-release
			return errors.New("not yet")
		}
		server, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		var group sync.WaitGroup
		for range 10 {
			group.Go(func() {
				if err := server.readyOnce(); err == nil || err.Error() != "not yet" {
					t.Errorf("got %v", err)
				}
			})
		}
		synctest.Wait()
		close(release)
		group.Wait()
		if _ = server.readyOnce(); asked != 2 {
			t.Errorf("asked %d times, want 2", asked)
		}
	})
}

// A client that would take a compressed answer is given a plain one, in whole.
func TestMetricsAreWhole(t *testing.T) {
	cfg := new(program).config()
	if err := RegisterBuild(cfg.Registry, cfg.Build); err != nil {
		t.Fatal(err)
	}
	base := "http://" + start(t, cfg)[0]
	got := ask(t, client(nil), "GET", base+"/metrics", func(r *http.Request) { r.Header.Set("Accept-Encoding", "gzip, zstd") })
	if got.status != 200 || got.header.Get("Content-Encoding") != "" || !strings.Contains(got.header.Get("Content-Type"), "text/plain") ||
		!strings.Contains(got.body, "nudged_build_info{") || !strings.HasSuffix(got.body, "\n") {
		t.Errorf("%d %v\n%s", got.status, got.header, got.body)
	}
	head := ask(t, client(nil), "HEAD", base+"/metrics", nil)
	if head.status != 200 || head.body != "" {
		t.Errorf("HEAD: %d %q", head.status, head.body)
	}
}

// However many pages cannot be shown, the log is told once.
func TestPagesNotShownAreToldOnce(t *testing.T) {
	cfg := withPages()
	cfg.Pages.Overview = func(context.Context) (Overview, error) { return Overview{}, errors.New("connection refused") }
	var log strings.Builder
	cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
	server, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		server.Handler().ServeHTTP(&rendered{header: http.Header{}}, r)
	}
	if n := strings.Count(log.String(), "a page is not shown"); n != 1 {
		t.Errorf("told %d times:\n%s", n, log.String())
	}
}

// A client that gives up its handshake is no warning, a handler that panics is.
func TestComplaints(t *testing.T) {
	for _, level := range []slog.Level{slog.LevelDebug, slog.LevelInfo} {
		var text strings.Builder
		log := slog.NewLogLogger(complaints{slog.NewTextHandler(&text, &slog.HandlerOptions{Level: level})}, slog.LevelWarn)
		log.Print("http: TLS handshake error from 10.0.0.1:4242: EOF")
		log.Print("http: panic serving 10.0.0.1:4242: oh no")
		got := text.String()
		handshake := strings.Contains(got, `level=DEBUG msg="http: TLS handshake error from 10.0.0.1:4242: EOF"`)
		if handshake != (level == slog.LevelDebug) || !strings.Contains(got, `level=WARN msg="http: panic serving 10.0.0.1:4242: oh no"`) {
			t.Errorf("at level %s: %s", level, got)
		}
	}
}
