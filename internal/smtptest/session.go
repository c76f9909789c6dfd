package smtptest

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
	"time"
)

// errEnded ends a session that the script ended.
var errEnded = errors.New("connection ended by the script")

// session is one connection. Only idle, conn and w are shared, with CloseIdle and reset.
type session struct {
	srv *Server
	id  int
	tcp *net.TCPConn
	r   *bufio.Reader

	mu   sync.Mutex // guards idle, conn and w
	idle bool       // between two messages
	conn net.Conn   // tcp, or TLS above it
	w    *bufio.Writer

	secure bool
	user   string
	msg    Message // the mail in the making
	mailed bool    // MAIL was taken
}

func newSession(srv *Server, id int, tcp *net.TCPConn) *session {
	return &session{srv: srv, id: id, tcp: tcp, conn: tcp, r: bufio.NewReader(tcp), w: bufio.NewWriter(tcp)}
}

func (s *session) run() {
	select {
	case <-s.srv.done:
		return
	default:
	}
	if s.srv.cfg.ImplicitTLS && s.handshake() != nil {
		return
	}
	if _, err := s.answer(StageConnect, "", "220 smtptest ESMTP"); err != nil {
		return
	}
	for {
		line, err := s.readCommand()
		if err != nil {
			return
		}
		if err := s.obey(line); err != nil {
			return
		}
	}
}

// handshake changes to TLS.
func (s *session) handshake() error {
	secured := tls.Server(s.tcp, s.srv.tls)
	if err := secured.Handshake(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conn, s.secure = secured, true
	s.r, s.w = bufio.NewReader(secured), bufio.NewWriter(secured)
	return nil
}

// readCommand sends what was answered so far unless more commands have come already, as
// RFC 2920 section 3.2 wants it, and reads a line.
func (s *session) readCommand() (string, error) {
	if s.r.Buffered() == 0 {
		if err := s.flush(); err != nil {
			return "", err
		}
	}
	line, err := s.r.ReadString('\n')
	return strings.TrimRight(line, "\r\n"), err
}

func (s *session) obey(line string) error {
	verb := verbOf(line)
	s.note(line)
	switch verb {
	case "EHLO":
		s.resetMail()
		_, err := s.answer(StageEHLO, line, s.greeting())
		return err
	case "HELO":
		s.resetMail()
		_, err := s.answer(StageEHLO, line, "250 smtptest")
		return err
	case "STARTTLS":
		return s.startTLS(line)
	case "AUTH":
		return s.auth(line)
	case "MAIL":
		return s.mail(line)
	case "RCPT":
		return s.rcpt(line)
	case "DATA":
		return s.data(line)
	case "RSET":
		s.resetMail()
		_, err := s.answer(StageRSET, line, "250 2.0.0 flushed")
		return err
	case "NOOP":
		_, err := s.answer(StageNOOP, line, "250 2.0.0 ok")
		return err
	case "QUIT":
		if _, err := s.answer(StageQUIT, line, "221 2.0.0 bye"); err != nil {
			return err
		}
		_ = s.flush()
		return errEnded
	default:
		return s.reply("500 5.5.1 command not recognized")
	}
}

func (s *session) greeting() string {
	lines := append([]string{"smtptest"}, s.srv.cfg.Extensions...)
	if s.srv.cfg.StartTLS && !s.secure {
		lines = append(lines, "STARTTLS")
	}
	if s.srv.cfg.Username != "" {
		lines = append(lines, "AUTH "+strings.Join(s.srv.cfg.Auth, " "))
	}
	return "250-" + strings.Join(lines[:len(lines)-1], "\n250-") + "\n250 " + lines[len(lines)-1]
}

func (s *session) startTLS(line string) error {
	usual := "220 2.0.0 go ahead"
	if !s.srv.cfg.StartTLS || s.secure {
		usual = "503 5.5.1 not now"
	}
	code, err := s.answer(StageSTARTTLS, line, usual)
	if err != nil || code != '2' {
		return err
	}
	if err := s.flush(); err != nil {
		return err
	}
	return s.handshake()
}

func (s *session) mail(line string) error {
	usual := "250 2.1.0 ok"
	path, params, ok := pathOf(line, "FROM:")
	switch {
	case !ok:
		usual = "501 5.5.4 syntax: MAIL FROM:<address>"
	case s.srv.cfg.Username != "" && s.user == "":
		usual = "530 5.7.0 authentication required"
	case s.mailed:
		usual = "503 5.5.1 nested MAIL"
	}
	s.setIdle(false)
	s.msg.From, s.msg.MailParams = path, params
	code, err := s.answer(StageMAIL, line, usual)
	if code == '2' {
		s.mailed = true
	} else {
		s.resetMail()
	}
	return err
}

func (s *session) rcpt(line string) error {
	usual := "250 2.1.5 ok"
	path, _, ok := pathOf(line, "TO:")
	switch {
	case !ok:
		usual = "501 5.5.4 syntax: RCPT TO:<address>"
	case !s.mailed:
		usual = "503 5.5.1 need MAIL first"
	}
	before := s.msg.To
	s.msg.To = slices.Concat(before, []string{path})
	code, err := s.answer(StageRCPT, line, usual)
	if code != '2' {
		s.msg.To = before
	}
	return err
}

func (s *session) data(line string) error {
	usual := "354 end with a dot"
	if !s.mailed || len(s.msg.To) == 0 {
		usual = "503 5.5.1 need RCPT first"
	}
	code, err := s.answer(StageDATA, line, usual)
	if err != nil || code != '3' {
		return err
	}
	if err := s.flush(); err != nil {
		return err
	}
	if err := s.readBody(); err != nil {
		if len(s.msg.Data) > 0 {
			s.finish(Incomplete)
		}
		return err
	}
	s.note(".")
	_, err = s.answer(StageDot, "", "250 2.0.0 ok")
	s.resetMail()
	return err
}

// readBody reads to the final dot into msg.Data.
func (s *session) readBody() error {
	var body bytes.Buffer
	for first := true; ; first = false {
		line, err := s.r.ReadBytes('\n')
		if string(line) == ".\r\n" {
			return nil
		}
		body.Write(bytes.TrimPrefix(line, []byte(".")))
		s.msg.Data = body.Bytes()
		if err != nil {
			return err
		}
		if !first {
			continue
		}
		if _, err := s.answer(StageBody, "", ""); err != nil {
			return err
		}
		if err := s.flush(); err != nil {
			return err
		}
	}
}

// finish records what became of the body.
func (s *session) finish(fate Fate) {
	s.complete()
	s.msg.Fate = fate
	if s.srv.cfg.DiscardData {
		s.msg.Data = nil
	}
	s.srv.rec.addBody(s.msg)
}

func (s *session) complete() {
	s.msg.Conn, s.msg.TLS, s.msg.User, s.msg.At = s.id, s.secure, s.user, time.Now()
}

// closeIdle says farewell and closes the connection if it is between two messages.
func (s *session) closeIdle(farewell string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.idle {
		return
	}
	if farewell != "" {
		_, _ = s.w.WriteString(farewell + "\r\n")
		_ = s.w.Flush()
	}
	s.conn.Close()
}

// reset closes with RST instead of FIN.
func (s *session) reset() {
	_ = s.tcp.SetLinger(0)
	s.tcp.Close()
}

func (s *session) resetMail() {
	s.msg, s.mailed = Message{}, false
	s.setIdle(true)
}

func (s *session) setIdle(idle bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.idle = idle
}

func (s *session) reply(text string) error {
	return s.write(strings.ReplaceAll(text, "\n", "\r\n") + "\r\n")
}

func (s *session) write(text string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err := s.w.WriteString(text)
	return err
}

func (s *session) flush() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.w.Flush()
}

// note records a command, secrets left out.
func (s *session) note(line string) {
	if fields := strings.Fields(line); len(fields) > 2 && verbOf(line) == "AUTH" {
		line = strings.Join(fields[:2], " ")
	}
	s.srv.rec.update(func() { s.srv.rec.commands[s.id] = append(s.srv.rec.commands[s.id], line) })
}

func verbOf(line string) string {
	verb, _, _ := strings.Cut(line, " ")
	return strings.ToUpper(verb)
}

// pathOf returns the address and the parameters of a line such as "MAIL FROM:<a@b> SIZE=1".
func pathOf(line, keyword string) (path string, params []string, ok bool) {
	_, rest, found := strings.Cut(line, " ")
	if !found || len(rest) < len(keyword) || !strings.EqualFold(rest[:len(keyword)], keyword) {
		return "", nil, false
	}
	rest = rest[len(keyword):]
	last := strings.LastIndexByte(rest, '>')
	if !strings.HasPrefix(rest, "<") || last < 0 {
		return "", nil, false
	}
	return rest[1:last], strings.Fields(rest[last+1:]), true
}
