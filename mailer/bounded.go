package mailer

import (
	"bytes"
	"errors"
)

// maxMail bounds a whole mail, and each of its parts, in bytes. A reminder has some ten thousand; one
// that is so much larger comes of a column filled by mistake.
const maxMail = 1 << 20

var errTooLarge = errors.New("the mail is larger than 1 MiB")

// bounded is a buffer that takes maxMail bytes and no more.
type bounded struct{ bytes.Buffer }

// Write implements io.Writer.
func (b *bounded) Write(p []byte) (int, error) {
	if b.Len()+len(p) > maxMail {
		return 0, errTooLarge
	}
	return b.Buffer.Write(p)
}
