package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"nudged/internal/smtptest"
)

// A URL that the driver refuses is a mistake like any other, told by every command with its place, wherever it
// came from, and never repeated.
func TestDatabaseURLsThatTheDriverRefuses(t *testing.T) {
	s := newSite(t, smtptest.Config{})
	good, database := s.readConfig(), s.url
	file := filepath.Join(s.dir, "url")
	for url, reason := range map[string]string{
		"postgres://u:hunter2@localhost:99999/app":                         "invalid port, want 1 to 65535",
		"postgres://u:hunter2@localhost/app?sslmode=foo":                   "failed to configure TLS (sslmode is invalid), want disable, allow, prefer, require, verify-ca or verify-full",
		"postgres://u:hunter2@localhost/app?sslrootcert=/nope":             "failed to configure TLS (unable to read CA file: open /nope: no such file or directory)",
		"postgres://u:hunter2@localhost/app?pool_max_conns=abc":            `cannot parse pool_max_conns ("abc": invalid syntax)`,
		"postgres://u:hunter2@localhost/app?default_query_exec_mode=foo":   `invalid default_query_exec_mode (unknown value "foo"), want cache_statement, cache_describe, describe_exec, exec or simple_protocol`,
		"postgres://u:hunter2@localhost/app?target_session_attrs=foo":      "unknown target_session_attrs value: foo, want any, read-write, read-only, primary, standby or prefer-standby",
		"postgres://u:hunter2@localhost/app?connect_timeout=foo":           `invalid connect_timeout ("foo": invalid syntax), want whole seconds`,
		"host=localhost password=hunter2 port=foo":                         "invalid port, want 1 to 65535",
		"host=localhost password=two hunter2 port=1":                       "the driver cannot take it apart, want keywords such as host=/run/postgresql dbname=app, blanks in single quotes",
		"postgres://u:%zzhunter2@localhost/app":                            "the driver cannot take it apart, want postgres://user@host/database with special characters percent-encoded",
		"postgres://localhost:1/app?target_session_attrs=u:hunter2@db/app": "the driver cannot read it",
	} {
		if err := os.WriteFile(file, []byte(url+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		const got = ` (got "<secret>")`
		commands := [][]string{{"check-config"}, {"run", "--web.listen-address=127.0.0.1:0"}, {"migrate"}, {"explain", "r"}}
		s.url = ""
		s.writeConfig(good + "database:\n  url: '" + url + "'\n")
		for _, command := range commands {
			s.refused(2, s.config+":7: database.url: "+reason+got, command...)
		}
		s.writeConfig(good + "database:\n  url_file: url\n")
		s.refused(2, s.config+":7: database.url_file: in the file: "+reason+` (got "url")`, "check-config")
		s.refused(2, s.config+":7: database.url_file: in the file: "+reason+` (got "url")`, "migrate")
		s.writeConfig(good)
		s.url = url
		for _, command := range commands {
			s.refused(2, "NUDGED_DATABASE_URL: "+reason+got, command...)
		}
		s.url = database
		s.refused(2, "--database.url: "+reason+got, "migrate", "--database.url="+url)
		s.refused(2, "--database.url: "+reason+got, "check-config", "--database.url="+url)
	}
}

// What the URL leaves open comes from variables of the driver, where the mistake may be.
func TestVariablesOfTheDriver(t *testing.T) {
	s := newSite(t, smtptest.Config{})
	s.url = "postgres://u@localhost/app"
	t.Setenv("PGPORT", "99999")
	s.refused(2, `NUDGED_DATABASE_URL: invalid port, want 1 to 65535; what the URL leaves open comes from PGPORT (got "<secret>")`, "migrate", "--status")
}

// What the daemon takes, the migration takes.
func TestMigrateTakesWhatRunTakes(t *testing.T) {
	s := newSite(t, smtptest.Config{})
	separator := "?"
	if strings.Contains(s.url, "?") {
		separator = "&"
	}
	s.url += separator + "pool_max_conns=5"
	s.want("the schema is up to date", "migrate")
	s.start().ready().stop()
}
