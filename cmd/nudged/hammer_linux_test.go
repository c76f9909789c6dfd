package main_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"nudged/internal/smtptest"
)

// What the web port has to bear at once, and what the process may take for it.
const (
	hammerers   = 50        // clients that ask as fast as they can
	slowClients = 200       // of each kind of client that keeps a connection and does not go on
	mostMemory  = 112 << 20 // bytes; GOMEMLIMIT of the Deployment
	mostRoutine = 60        // goroutines when the clients are gone
)

// Clients of every bad kind ask the web port while reminders go out: all go out, once each, the
// process stays what it was, and what the clients took is given back.
func TestWebUnderLoadStopsNoReminder(t *testing.T) {
	const reminders = 400
	s := newSite(t, smtptest.Config{Script: smtptest.Always(smtptest.StageDot, smtptest.Answer("250 2.0.0 OK").After(20*time.Millisecond))})
	s.exec(`INSERT INTO nudged.requests (id, account_id, status, recipient_email, title) VALUES ('first', 'a', 'completed', 'first@example.net', 'T')`)
	p := s.start().ready()
	alone := p.number("go_goroutines")
	address := strings.TrimPrefix(p.web, "http://")

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var clients sync.WaitGroup
	var answered, refused atomic.Int64
	for i := range hammerers {
		path := []string{"/metrics", "/-/healthy", "/-/ready", "/", "/requests/first"}[i%5]
		clients.Go(func() {
			client := http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: i%2 == 0}}
			defer client.CloseIdleConnections()
			for ctx.Err() == nil {
				switch status, err := fetch(ctx, &client, p.web+path); {
				case ctx.Err() != nil:
				case err != nil:
					t.Errorf("%s: %v", path, err)
				case status == http.StatusOK:
					answered.Add(1)
				case status == http.StatusServiceUnavailable: // a page that had to wait too long for its turn
					refused.Add(1)
				default:
					t.Errorf("%s: status %d", path, status)
				}
			}
		})
	}
	for range slowClients {
		clients.Go(func() { linger(ctx, address, "GET /metrics HTTP/1.1\r\nHost: a\r\nX-", "a") })                      // never ends its header
		clients.Go(func() { linger(ctx, address, strings.Repeat("GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n", 50), "") }) // never reads
		clients.Go(func() {
			linger(ctx, address, "POST /-/reload HTTP/1.1\r\nHost: a\r\nContent-Length: 4000\r\n\r\n", "a")
		})
		clients.Go(func() { linger(ctx, address, "GET / HTTP/1.1\r\nHost: a\r\nX-Large: "+strings.Repeat("a", 1<<20), "a") })
	}

	s.due(reminders)
	begun := time.Now()
	s.waitRows("sent/", reminders)
	took := time.Since(begun)
	if n := s.acceptedOnce(); n != reminders {
		t.Errorf("the server accepted %d mails, want %d", n, reminders)
	}
	if status, body := p.get("/-/healthy"); status != http.StatusOK {
		t.Errorf("/-/healthy: %d %s", status, body)
	}
	cancel()
	clients.Wait()
	if answered.Load() < 10*hammerers || refused.Load() > answered.Load()/10 {
		t.Errorf("%d requests answered, %d refused", answered.Load(), refused.Load())
	}
	peak := p.peakMemory()
	if peak > mostMemory {
		t.Errorf("%d MiB resident at the peak, want %d at most", peak>>20, mostMemory>>20)
	}
	s.wait("the goroutines of the clients to end", func() bool { return p.number("go_goroutines") < mostRoutine })
	t.Logf("%d reminders in %s; %d answered, %d refused meanwhile; %d MiB at the peak; goroutines %d before, %d after",
		reminders, took.Round(time.Millisecond), answered.Load(), refused.Load(), peak>>20, alone, p.number("go_goroutines"))
	p.stop()
}

// fetch returns the status of an answer that came whole.
func fetch(ctx context.Context, client *http.Client, url string) (int, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, err
	}
	response, err := client.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	return response.StatusCode, err
}

// linger is a client that begins, goes on byte by byte where there is more, reads nothing, and
// begins anew when it is thrown out.
func linger(ctx context.Context, address, beginning, more string) {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for ctx.Err() == nil {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			return
		}
		_ = conn.SetWriteDeadline(time.Now().Add(time.Second))
		_, err = io.WriteString(conn, beginning)
		for err == nil && ctx.Err() == nil {
			select {
			case <-ctx.Done():
			case <-tick.C:
				_ = conn.SetWriteDeadline(time.Now().Add(time.Second))
				_, err = io.WriteString(conn, more)
			}
		}
		conn.Close()
	}
}

// number returns the value of a series that is a whole number.
func (p *process) number(series string) int {
	n, _ := strconv.Atoi(p.metric(series))
	return n
}

// peakMemory is the most that the process ever had resident, in bytes.
func (p *process) peakMemory() int64 {
	p.s.t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		p.s.t.Fatal(err)
	}
	_, after, _ := bytes.Cut(status, []byte("VmHWM:"))
	kib, err := strconv.ParseInt(string(bytes.Fields(after)[0]), 10, 64)
	if err != nil {
		p.s.t.Fatal(err)
	}
	return kib << 10
}
