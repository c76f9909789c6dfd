package config

import (
	"strings"
	"testing"
)

// What stands behind a key that nobody knows, or in a text that is no YAML, may be a secret: neither it nor
// the piece of the file around it is repeated.
func TestUnknownKeysKeepTheirValues(t *testing.T) {
	for _, text := range []string{
		"smtp:\n  pasword: hunter2\n", "smtp:\n  pwd: hunter2\n", "smtp: {pasword: hunter2, pasword: hunter2}", "databse: hunter2",
		"database: hunter2", "hunter2", "smtp: {password hunter2}", "smtp: {password=hunter2: 1}", "smtp:\n  password hunter2\n  host: a\n",
		"smtp:\n  pwd: |hunter2\n", "smtp:\n  pwd: >hunter2\n", "smtp:\n  pwd: !hunter2 x\n", "smtp:\n  pwd: @hunter2\n", "smtp:\n  pwd: \"hunter2\n",
		"smtp:\n  pwd: &hunter2\n", "smtp:\n  pwd: [hunter2\n", "smtp:\n  pwd: hunter2: x\n", "smtp:\n\tpwd: hunter2\n", "%YAML hunter2\n---\na: 1\n",
		"smtp: {host: 'postgres://u:hun/hunter2@h'}", "smtp: {host: 'host=h sslpassword=hunter2'}", "limits: {retry_backoff: {pwd: hunter2}}",
		"cadences: {default: {pwd: hunter2}}", "a: 1\n---\nhunter2\n", "smtp: {'': hunter2}", "'': hunter2",
	} {
		_, err := Parse("nudged.yml", []byte(text), Overrides{})
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %v", text, err)
		}
	}
}
