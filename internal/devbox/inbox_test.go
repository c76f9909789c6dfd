package devbox

import (
	"fmt"
	"log/slog"
	"net"
	"net/smtp"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
)

func newInbox(t *testing.T, out *output) (*inbox, string) {
	t.Helper()
	i, err := startInbox(inboxConfig{
		dir:    filepath.Join(t.TempDir(), "inbox"),
		onMail: printer(out),
		logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	return i, net.JoinHostPort(loopback, strconv.Itoa(i.port))
}

func closeInbox(t *testing.T, i *inbox) {
	t.Helper()
	if err := i.close(); err != nil {
		t.Error(err)
	}
}

// send hands a mail to the box's inbox.
func send(t *testing.T, box *Box, to, content string) {
	t.Helper()
	host, port := box.SMTPAddr()
	err := smtp.SendMail(net.JoinHostPort(host, strconv.Itoa(port)), nil, "nudged@ledger.example", []string{to}, []byte(content))
	if err != nil {
		t.Fatal(err)
	}
}

// mails lists the files in the order of their names.
func mails(t *testing.T, box *Box) []string { return files(t, box.InboxDir()) }

func files(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

func TestMailIsKeptAsItCame(t *testing.T) {
	t.Parallel()
	out := new(output)
	i, addr := newInbox(t, out)
	defer closeInbox(t, i)
	content := "Subject: =?utf-8?q?F=C3=BCr_dich?=\r\nTo: ada@client.example\r\n\r\nText\r\n.dot at the start\r\n\r\nend\r\n"
	err := smtp.SendMail(addr, nil, "nudged@ledger.example", []string{"ada@client.example", "bela@client.example"}, []byte(content))
	if err != nil {
		t.Fatal(err)
	}
	names := files(t, i.config.dir)
	if len(names) != 1 {
		t.Fatalf("the inbox holds %v, want one file", names)
	}
	file := filepath.Join(i.config.dir, names[0])
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != content {
		t.Errorf("kept\n%q, sent\n%q", got, content)
	}
	if strings.Contains(names[0], "ada") || !strings.HasSuffix(names[0], ".eml") {
		t.Errorf("name of the file = %s", names[0])
	}
	want := fmt.Sprintf("mail to ada@client.example, bela@client.example: Für dich (%s)\n", file)
	if out.String() != want {
		t.Errorf("line = %q, want %q", out.String(), want)
	}
}

func TestNamesSortByArrival(t *testing.T) {
	t.Parallel()
	i, addr := newInbox(t, new(output))
	defer closeInbox(t, i)
	const many = 20
	for n := range many {
		content := fmt.Sprintf("Subject: %d\r\n\r\n", n)
		if err := smtp.SendMail(addr, nil, "a@ledger.example", []string{"b@client.example"}, []byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	for n, name := range files(t, i.config.dir) {
		content, err := os.ReadFile(filepath.Join(i.config.dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if want := fmt.Sprintf("Subject: %d\r\n", n); !strings.HasPrefix(string(content), want) {
			t.Errorf("file %d in the order of names is %q", n, content)
		}
	}
}

func TestManyAtOnceAreAllKept(t *testing.T) {
	t.Parallel()
	out := new(output)
	i, addr := newInbox(t, out)
	defer closeInbox(t, i)
	const many = 40
	var senders sync.WaitGroup
	for range many {
		senders.Go(func() {
			if err := smtp.SendMail(addr, nil, "a@ledger.example", []string{"b@client.example"}, []byte("Subject: x\r\n\r\n")); err != nil {
				t.Error(err)
			}
		})
	}
	senders.Wait()
	if got := len(files(t, i.config.dir)); got != many {
		t.Errorf("%d files for %d mails", got, many)
	}
	if got := strings.Count(out.String(), "\n"); got != many {
		t.Errorf("%d lines for %d mails", got, many)
	}
}

func TestSubjectCannotControlTheTerminal(t *testing.T) {
	t.Parallel()
	out := new(output)
	i, addr := newInbox(t, out)
	defer closeInbox(t, i)
	content := "Subject: =?utf-8?q?=1B]0;owned=07=0Amail_to_nobody?=\r\n\r\n"
	if err := smtp.SendMail(addr, nil, "a@ledger.example", []string{"b@client.example"}, []byte(content)); err != nil {
		t.Fatal(err)
	}
	if line := strings.TrimSuffix(out.String(), "\n"); strings.ContainsAny(line, "\x1b\a\n") {
		t.Errorf("line = %q", line)
	}
}

func TestClosedInboxHoldsNoHalfMail(t *testing.T) {
	t.Parallel()
	i, addr := newInbox(t, new(output))
	client, err := smtp.Dial(addr)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for _, step := range []func() error{
		func() error { return client.Mail("a@ledger.example") },
		func() error { return client.Rcpt("b@client.example") },
	} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	body, err := client.Data()
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(body, "Subject: half\r\n\r\nwithout its e")
	closeInbox(t, i)
	if err := body.Close(); err == nil {
		t.Error("a mail was acknowledged after the inbox was closed")
	}
	if names := files(t, i.config.dir); len(names) != 0 {
		t.Errorf("the inbox holds %v", names)
	}
}
