package mailer

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"time"
)

// identity is what a reminder is recognised by, equal on every attempt: the left side of its
// Message-ID, its MIME boundary and its idempotency key.
func identity(requestID string, link time.Time, slot string) string {
	return digest("reminder", requestID, link.UTC().Format(time.RFC3339Nano), slot)
}

// threadRoot names the mail that all reminders of a request answer to. No mail carries it;
// readers of mail put those that refer to it into one thread.
func threadRoot(requestID string) string { return digest("request", requestID) }

// digest hashes the parts, each with its length before it, to 40 hexadecimal digits.
func digest(parts ...string) string {
	h := sha256.New()
	for _, part := range parts {
		_ = binary.Write(h, binary.BigEndian, uint64(len(part)))
		h.Write([]byte(part))
	}
	return hex.EncodeToString(h.Sum(nil)[:20])
}
