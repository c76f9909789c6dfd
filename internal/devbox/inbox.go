package devbox

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net"
	netmail "net/mail"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/emersion/go-smtp"
)

const (
	loopback = "127.0.0.1"
	maxMail  = 32 << 20 // bytes
)

// mail is one that arrived.
type mail struct {
	recipients []string
	subject    string
	file       string
}

type inboxConfig struct {
	dir    string
	port   int
	onMail func(mail) // called for one mail at a time, before it is acknowledged
	logger *slog.Logger
}

// inbox is an SMTP server that keeps what it is given.
type inbox struct {
	config inboxConfig
	port   int
	server *smtp.Server
	served chan error

	mu     sync.Mutex // held while a mail is stored
	closed bool
}

func startInbox(config inboxConfig) (*inbox, error) {
	if err := os.MkdirAll(config.dir, 0o700); err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(loopback, strconv.Itoa(config.port)))
	if err != nil {
		return nil, err
	}
	i := &inbox{config: config, port: listener.Addr().(*net.TCPAddr).Port, served: make(chan error, 1)}
	i.server = smtp.NewServer(smtp.BackendFunc(func(*smtp.Conn) (smtp.Session, error) {
		return &session{inbox: i}, nil
	}))
	i.server.Domain = "inbox.localhost"
	i.server.MaxMessageBytes = maxMail
	i.server.EnableSMTPUTF8 = true
	i.server.ErrorLog = slog.NewLogLogger(config.logger.Handler(), slog.LevelWarn)
	go func() { i.served <- i.server.Serve(listener) }()
	return i, nil
}

// close cuts what connections there are. No mail is stored after it.
func (i *inbox) close() error {
	err := i.server.Close()
	i.mu.Lock()
	i.closed = true
	i.mu.Unlock()
	return errors.Join(err, <-i.served)
}

// store writes a mail under a name of its own and tells about it.
func (i *inbox) store(recipients []string, content []byte) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.closed {
		return smtp.ErrServerClosed
	}
	file, err := writeMail(i.config.dir, content)
	if err != nil {
		return err
	}
	i.config.onMail(mail{recipients: recipients, subject: subject(content), file: file})
	return nil
}

func writeMail(dir string, content []byte) (string, error) {
	const sortable = "20060102T150405.000000Z"
	name := time.Now().UTC().Format(sortable) + "-" + strings.ToLower(rand.Text()[:8]) + ".eml"
	draft := filepath.Join(dir, "."+name)
	file := filepath.Join(dir, name)
	err := os.WriteFile(draft, content, 0o600)
	if err == nil {
		err = os.Rename(draft, file)
	}
	if err != nil {
		os.Remove(draft) // as far as it was written
		return "", err
	}
	return file, nil
}

func subject(content []byte) string {
	message, err := netmail.ReadMessage(bytes.NewReader(content))
	if err != nil {
		return ""
	}
	raw := message.Header.Get("Subject")
	decoded, err := new(mime.WordDecoder).DecodeHeader(raw)
	if err != nil {
		return raw
	}
	return decoded
}

// printer writes one line for each mail. What a mail says about itself may hold anything: only
// what can be printed is.
func printer(out io.Writer) func(mail) {
	return func(m mail) {
		line := fmt.Sprintf("mail to %s: %s (%s)", strings.Join(m.recipients, ", "), m.subject, m.file)
		fmt.Fprintln(out, strings.Map(func(r rune) rune {
			if unicode.IsPrint(r) {
				return r
			}
			return unicode.ReplacementChar
		}, line))
	}
}

// session is one connection's envelope.
type session struct {
	inbox      *inbox
	recipients []string
}

func (s *session) Reset()        { s.recipients = nil }
func (s *session) Logout() error { return nil }

func (s *session) Mail(string, *smtp.MailOptions) error { return nil }

func (s *session) Rcpt(to string, _ *smtp.RcptOptions) error {
	s.recipients = append(s.recipients, to)
	return nil
}

func (s *session) Data(r io.Reader) error {
	content, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	return s.inbox.store(s.recipients, content)
}
