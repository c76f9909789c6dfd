package mailer

import "bytes"

// What leaves in one write together with the final dot, and how large a buffer a connection keeps
// between messages, both in bytes.
const (
	lastWrite  = 32 << 10
	keptBuffer = 64 << 10
)

// appendContent appends a message as DATA wants it: each line ends with CRLF, a dot that begins a
// line is doubled, and a line with a dot alone ends it all (RFC 5321 section 4.5.2).
func appendContent(out, message []byte) []byte {
	for len(message) > 0 {
		line := message
		if end := bytes.IndexByte(message, '\n'); end >= 0 {
			line = message[:end+1]
		}
		message = message[len(line):]
		if line[0] == '.' {
			out = append(out, '.')
		}
		line = bytes.TrimSuffix(line, []byte("\n"))
		out = append(out, bytes.TrimSuffix(line, []byte("\r"))...)
		out = append(out, "\r\n"...)
	}
	return append(out, ".\r\n"...)
}
