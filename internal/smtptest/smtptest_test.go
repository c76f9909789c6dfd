package smtptest_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/smtp"
	"net/textproto"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"nudged/internal/smtptest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func waiting(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// dial returns a client of the standard library, which knows nothing of this package.
func dial(t *testing.T, srv *smtptest.Server) *smtp.Client {
	t.Helper()
	client, err := smtp.Dial(srv.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

// send speaks one transaction, and returns the error of the first command that fails.
func send(client *smtp.Client, to, data string) error {
	if err := client.Mail("from@example.com"); err != nil {
		return err
	}
	if err := client.Rcpt(to); err != nil {
		return err
	}
	w, err := client.Data()
	if err != nil {
		return err
	}
	if _, err := io.WriteString(w, data); err != nil {
		return err
	}
	return w.Close()
}

func TestRecord(t *testing.T) {
	srv := smtptest.Start(t, smtptest.Config{StartTLS: true, Username: "u", Password: "p"})
	client := dial(t, srv)
	cfg := srv.ClientTLS()
	cfg.ServerName = srv.Host()
	if err := client.StartTLS(cfg); err != nil {
		t.Fatal(err)
	}
	if err := client.Auth(smtp.PlainAuth("", "u", "p", srv.Host())); err != nil {
		t.Fatal(err)
	}
	if err := send(client, "ana@example.net", "Message-ID: <1@x>\r\n\r\n.dot\r\nend\r\n"); err != nil {
		t.Fatal(err)
	}
	got := srv.Accepted()[0]
	if got.Conn != 1 || !got.TLS || got.User != "u" || got.From != "from@example.com" || got.At.IsZero() || got.Fate != smtptest.Accepted ||
		!slices.Equal(got.To, []string{"ana@example.net"}) || got.MessageID() != "1@x" ||
		string(got.Data) != "Message-ID: <1@x>\r\n\r\n.dot\r\nend\r\n" || !slices.Equal(got.MailParams, []string{"BODY=8BITMIME", "SMTPUTF8"}) {
		t.Errorf("got %+v", got)
	}
	want := []string{"EHLO localhost", "STARTTLS", "EHLO localhost", "AUTH PLAIN", "MAIL FROM:<from@example.com> BODY=8BITMIME SMTPUTF8", "RCPT TO:<ana@example.net>", "DATA", "."}
	if got := srv.Commands(1); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestOrder: a server without state is no server.
func TestOrder(t *testing.T) {
	srv := smtptest.Start(t, smtptest.Config{Username: "u", Password: "p"})
	conn, err := textproto.Dial("tcp", srv.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, step := range []struct {
		line string
		code int
	}{
		{"", 220}, {"HELO x", 250}, {"what", 500}, {"MAIL FROM:<a@b>", 530}, {"AUTH", 501}, {"AUTH X", 504}, {"AUTH PLAIN AHUAeA==", 535},
		{"AUTH LOGIN", 334}, {"dQ==", 334}, {"cA==", 235}, {"STARTTLS", 503}, {"RCPT TO:<a@b>", 503}, {"DATA", 503}, {"MAIL a@b", 501},
		{"MAIL FROM:<a@b>", 250}, {"MAIL FROM:<a@b>", 503}, {"MAIL FROM:<a@b>", 250}, {"RCPT a@b", 501}, {"DATA", 503}, {"RCPT TO:<a@b>", 250},
		{"RSET", 250}, {"DATA", 503}, {"NOOP", 250}, {"QUIT", 221},
	} {
		if step.line != "" {
			if err := conn.PrintfLine("%s", step.line); err != nil {
				t.Fatal(err)
			}
		}
		if code, text, err := conn.ReadResponse(0); err != nil || code != step.code {
			t.Errorf("%q: got %d %s, %v, want %d", step.line, code, text, err, step.code)
		}
	}
	if _, err := conn.ReadLine(); err != io.EOF {
		t.Errorf("got %v after QUIT, want the end", err)
	}
}

// TestFates: the record says what the server committed to, and not what it answered.
func TestFates(t *testing.T) {
	rows := []struct {
		action smtptest.Action
		fate   smtptest.Fate
	}{
		{smtptest.Action{}, smtptest.Accepted},
		{smtptest.Answer("251 ok"), smtptest.Accepted},
		{smtptest.Answer("250 ok").Refusing(), smtptest.Refused},
		{smtptest.Answer("451 later"), smtptest.Refused},
		{smtptest.Answer("550-no\n550 no").Accepting(), smtptest.Accepted},
		{smtptest.Raw("250 o").ThenHangup(), smtptest.Refused},
		{smtptest.Hangup(), smtptest.Refused},
		{smtptest.Hangup().Accepting(), smtptest.Accepted},
		{smtptest.Reset().Accepting(), smtptest.Accepted},
	}
	for i, row := range rows {
		srv := smtptest.Start(t, smtptest.Config{Script: smtptest.OnDot(func(m smtptest.Message) smtptest.Action {
			if m.To[0] != "ana@example.net" || m.MessageID() != "1" {
				t.Errorf("the script was asked about %+v", m)
			}
			return row.action
		})})
		_ = send(dial(t, srv), "ana@example.net", "Message-ID: <1>\r\n\r\nbody\r\n")
		bodies := srv.Bodies()
		if len(bodies) != 1 || bodies[0].Fate != row.fate || len(srv.Accepted()) == 1 != (row.fate == smtptest.Accepted) {
			t.Errorf("row %d: got %+v, want %s", i, bodies, row.fate)
		}
	}
}

// TestIncomplete: a body without its dot is in the record, and not accepted.
func TestIncomplete(t *testing.T) {
	srv := smtptest.Start(t, smtptest.Config{})
	client := dial(t, srv)
	if err := errors.Join(client.Mail("a@b"), client.Rcpt("c@d")); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Data(); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(client.Text.W, "half a li")
	client.Text.W.Flush()
	client.Close()
	if err := srv.WaitBodies(waiting(t), 1); err != nil {
		t.Fatal(err)
	}
	if got := srv.Bodies()[0]; got.Fate != smtptest.Incomplete || string(got.Data) != "half a li" || len(srv.Accepted()) != 0 {
		t.Errorf("got %+v", got)
	}
}

// TestEnds: how a connection ends is what the script says.
func TestEnds(t *testing.T) {
	for name, row := range map[string]struct {
		action smtptest.Action
		want   error
	}{
		"FIN":             {smtptest.Hangup(), io.EOF},
		"RST":             {smtptest.Reset(), syscall.ECONNRESET},
		"words, then FIN": {smtptest.Answer("421 bye").ThenHangup(), &textproto.Error{}},
	} {
		srv := smtptest.Start(t, smtptest.Config{Script: smtptest.At(smtptest.StageNOOP, row.action)})
		err := dial(t, srv).Noop()
		if _, words := row.want.(*textproto.Error); words {
			if answer, ok := errors.AsType[*textproto.Error](err); !ok || answer.Code != 421 {
				t.Errorf("%s: got %v", name, err)
			}
		} else if !errors.Is(err, row.want) {
			t.Errorf("%s: got %v, want %v", name, err, row.want)
		}
		if err := srv.WaitOpen(waiting(t), 0); err != nil {
			t.Error(err)
		}
	}
}

// TestUntil: an answer waits for its release, the commitment does not.
func TestUntil(t *testing.T) {
	release := make(chan struct{})
	srv := smtptest.Start(t, smtptest.Config{Script: smtptest.At(smtptest.StageDot, smtptest.Answer("250 ok").Until(release))})
	client := dial(t, srv)
	done := make(chan error, 1)
	go func() { done <- send(client, "a@b", "x\r\n") }()
	if err := srv.WaitAccepted(waiting(t), 1); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-done:
		t.Errorf("answered early: %v", err)
	default:
	}
	close(release)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestStallsEnd: a server with stalled connections closes cleanly, and so do its clients.
func TestStallsEnd(t *testing.T) {
	for _, action := range []smtptest.Action{smtptest.Stall(), smtptest.Answer("250 ok").Until(make(chan struct{})), smtptest.Answer("250 ok").After(time.Hour)} {
		srv := smtptest.Start(t, smtptest.Config{Script: smtptest.Always(smtptest.StageMAIL, action)})
		client := dial(t, srv)
		done := make(chan error, 1)
		go func() { done <- client.Mail("a@b") }()
		if err := srv.WaitReached(waiting(t), smtptest.StageMAIL, 1); err != nil {
			t.Fatal(err)
		}
		srv.Close()
		if err := <-done; err == nil {
			t.Error("got an answer from a closed server")
		}
	}
}

func TestScripts(t *testing.T) {
	script := smtptest.First(
		smtptest.OnConn(2, smtptest.Always(smtptest.StageMAIL, smtptest.Answer("450 two"))),
		smtptest.At(smtptest.StageMAIL, smtptest.Answer("451 first"), smtptest.Action{}, smtptest.Answer("452 third")),
	)
	got := ""
	for _, conn := range []int{1, 1, 2, 1, 1} {
		switch script(smtptest.Event{Stage: smtptest.StageMAIL, Conn: conn}) {
		case smtptest.Answer("450 two"):
			got += "two "
		case smtptest.Answer("451 first"):
			got += "first "
		case smtptest.Answer("452 third"):
			got += "third "
		default:
			got += "- "
		}
	}
	if got != "first - two third - " {
		t.Errorf("got %q", got)
	}
}

// TestOutage: the port refuses and takes connections again; those open stay open.
func TestOutage(t *testing.T) {
	srv := smtptest.Start(t, smtptest.Config{})
	client := dial(t, srv)
	srv.StopListening()
	if _, err := net.Dial("tcp", srv.Addr()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("got %v, want a refusal", err)
	}
	if err := client.Noop(); err != nil {
		t.Error(err)
	}
	if err := srv.Listen(); err != nil {
		t.Fatal(err)
	}
	if err := dial(t, srv).Noop(); err != nil {
		t.Error(err)
	}
}

// TestCloseIdle: only connections between two messages are closed.
func TestCloseIdle(t *testing.T) {
	srv := smtptest.Start(t, smtptest.Config{})
	idle, busy := dial(t, srv), dial(t, srv)
	if err := errors.Join(idle.Noop(), busy.Mail("a@b")); err != nil {
		t.Fatal(err)
	}
	srv.CloseIdle("421 4.4.2 idle")
	if err := srv.WaitOpen(waiting(t), 1); err != nil {
		t.Fatal(err)
	}
	if line, err := idle.Text.ReadLine(); line != "421 4.4.2 idle" || err != nil {
		t.Errorf("got %q, %v", line, err)
	}
	if err := busy.Rcpt("c@d"); err != nil {
		t.Error(err)
	}
}

// TestPipelining: commands that come together are answered together, and in order.
func TestPipelining(t *testing.T) {
	srv := smtptest.Start(t, smtptest.Config{})
	conn, err := net.Dial("tcp", srv.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	r := bufio.NewReader(conn)
	if _, err := r.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(conn, "HELO x\r\nMAIL FROM:<a@b>\r\nRCPT TO:<c@d>\r\nDATA\r\n")
	fmt.Fprint(conn, "body\r\n.\r\nQUIT\r\n")
	all, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	codes := ""
	for line := range strings.Lines(string(all)) {
		codes += line[:3] + " "
	}
	if codes != "250 250 250 354 250 221 " {
		t.Errorf("got %s", codes)
	}
}

// TestCrowd: many connections and thousands of messages are counted right.
func TestCrowd(t *testing.T) {
	const clients, each = 50, 40
	srv := smtptest.Start(t, smtptest.Config{DiscardData: true, Script: smtptest.OnDot(func(m smtptest.Message) smtptest.Action {
		if strings.HasPrefix(m.To[0], "no") {
			return smtptest.Answer("550 no")
		}
		return smtptest.Action{}
	})})
	var wg sync.WaitGroup
	for i := range clients {
		wg.Go(func() {
			client, err := smtp.Dial(srv.Addr())
			if err != nil {
				t.Error(err)
				return
			}
			defer client.Close()
			for j := range each {
				to := fmt.Sprintf("yes-%d-%d@b", i, j)
				if j%4 == 0 {
					to = "no" + to
				}
				if err := send(client, to, "x\r\n"); (err == nil) == (j%4 == 0) {
					t.Errorf("%s: %v", to, err)
				}
			}
		})
	}
	if err := srv.WaitAccepted(waiting(t), clients*each*3/4); err != nil {
		t.Error(err)
	}
	wg.Wait()
	if len(srv.Accepted()) != clients*each*3/4 || len(srv.Bodies()) != clients*each || srv.Connections() != clients {
		t.Errorf("%d accepted, %d bodies, %d connections", len(srv.Accepted()), len(srv.Bodies()), srv.Connections())
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := srv.WaitAccepted(ctx, 1e6); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
