package smtptest

import (
	"encoding/base64"
	"strings"
)

// auth speaks PLAIN (RFC 4616) and LOGIN.
func (s *session) auth(line string) error {
	fields := strings.Fields(line)
	if len(fields) < 2 {
		return s.reply("501 5.5.4 which mechanism?")
	}
	var user, password string
	switch strings.ToUpper(fields[1]) {
	case "PLAIN":
		response := ""
		if len(fields) > 2 {
			response = decode64(fields[2])
		} else if err := s.challenge("", &response); err != nil {
			return err
		}
		if parts := strings.Split(response, "\x00"); len(parts) == 3 {
			user, password = parts[1], parts[2]
		}
	case "LOGIN":
		if err := s.challenge("Username:", &user); err != nil {
			return err
		}
		if err := s.challenge("Password:", &password); err != nil {
			return err
		}
	default:
		return s.reply("504 5.5.4 mechanism not known")
	}
	usual := "535 5.7.8 bad username or password"
	if s.srv.cfg.Username != "" && user == s.srv.cfg.Username && password == s.srv.cfg.Password {
		usual = "235 2.7.0 welcome"
	}
	code, err := s.answer(StageAUTH, line, usual)
	if code == '2' {
		s.user = user
	}
	return err
}

func (s *session) challenge(question string, response *string) error {
	if err := s.reply("334 " + base64.StdEncoding.EncodeToString([]byte(question))); err != nil {
		return err
	}
	line, err := s.readCommand()
	*response = decode64(line)
	return err
}

func decode64(text string) string {
	decoded, _ := base64.StdEncoding.DecodeString(text)
	return string(decoded)
}
