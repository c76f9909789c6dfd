package config

import (
	"fmt"
	"io"
	"log/slog"
	"regexp"
)

// hidden is what stands in place of a secret.
const hidden = "<secret>"

// Secret is a text that does not print. Whoever needs it asks for it with Reveal. The zero value
// is empty. It holds a pointer because fmt asks no method about %p, nor about a private field.
type Secret struct{ text *string }

// NewSecret wraps a text that must not print.
func NewSecret(text string) Secret { return Secret{&text} }

// Reveal returns the text itself.
func (s Secret) Reveal() string {
	if s.text == nil {
		return ""
	}
	return *s.text
}

// Empty reports whether there is no secret.
func (s Secret) Empty() bool { return s.Reveal() == "" }

// String returns a fixed word.
func (Secret) String() string { return hidden }

// Format writes the fixed word whatever the verb: String alone would not cover %#v and %d.
func (Secret) Format(f fmt.State, _ rune) { io.WriteString(f, hidden) } //nolint:errcheck // fmt.State keeps its errors

// LogValue returns the fixed word for log/slog.
func (Secret) LogValue() slog.Value { return slog.StringValue(hidden) }

// MarshalText returns the fixed word for JSON, YAML and the like.
func (Secret) MarshalText() ([]byte, error) { return []byte(hidden), nil }

// credentials matches texts that carry a password: a URL with user:password@, or a keyword list.
var credentials = regexp.MustCompile(`(?i)://[^/@\s]*:[^@]*@|password\s*=`)

// show returns the value of a known key as a mistake may repeat it. Values that are secret, or look as if a
// secret had been put in the wrong place, are not repeated.
func show(path, text string) string {
	if path == "database.url" || credentials.MatchString(text) {
		return quote(hidden)
	}
	return quote(text)
}
