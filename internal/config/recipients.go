package config

import (
	"errors"
	"regexp"
	"strings"
)

// Recipients says who may be mailed. The zero value allows everyone.
type Recipients struct {
	patterns []*regexp.Regexp
	texts    []string
}

// Patterns are those of the configuration, as they are written there.
func (r Recipients) Patterns() []string { return r.texts }

// Allow reports whether a bare address may be mailed. Upper and lower case are the same.
func (r Recipients) Allow(address string) bool {
	for _, pattern := range r.patterns {
		if pattern.MatchString(address) {
			return true
		}
	}
	return len(r.patterns) == 0
}

// AllowRecipient reports whether mail.allow_recipients lets this bare address be mailed.
func (c *Config) AllowRecipient(address string) bool { return c.Mail.Recipients.Allow(address) }

// recipients decodes a list of patterns.
func (r *reader) recipients(s *section, key string, dst *Recipients) {
	var patterns []string
	texts(s, key, &patterns)
	for i, text := range patterns {
		path := indexed(join(s.path, key), i)
		pattern, err := recipient(text)
		if err != nil && !r.wrong(path) {
			r.mistake(path, err.Error(), text)
		}
		dst.patterns, dst.texts = append(dst.patterns, pattern), append(dst.texts, text)
	}
}

// recipient compiles one pattern: an address, @domain, or either with * for any characters but @.
// A single * allows everyone.
func recipient(text string) (*regexp.Regexp, error) {
	local, domain, ok := strings.Cut(text, "@")
	switch {
	case text == "*":
		local, domain = "*", "*"
	case !ok || domain == "" || strings.ContainsAny(domain, "@ \t<>,") || strings.ContainsAny(local, " \t<>,"):
		return nil, errors.New("want an address, @example.com, *@example.com or *")
	case local == "":
		local = "*"
	}
	glob := strings.ReplaceAll(regexp.QuoteMeta(local+"@"+domain), `\*`, "[^@]*")
	return regexp.MustCompile("(?is)^" + glob + "$"), nil
}
