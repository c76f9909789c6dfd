package postgres

import (
	"errors"
	"os"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// CheckURL reports whether Open can make a pool of a URL. It connects to nothing, and reads the files that
// the URL names. The error holds nothing of the URL that may be secret.
func CheckURL(url string) error {
	_, err := parseURL(url)
	return err
}

// defaultMaxConns is enough for one pass, one commit, a renewal, the gauges and a person.
const defaultMaxConns = 6

func parseURL(url string) (*pgxpool.Config, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, errors.New(refusal(err) + besides())
	}
	if !strings.Contains(url, "pool_max_conns") { // the driver does not tell its own default from a wish
		config.MaxConns = defaultMaxConns
	}
	return config, nil
}

// refusal returns the driver's words about one parameter. Of a text that it cannot take apart it may repeat any
// piece, the password too, and so it may where one with an @ was cut in the wrong place.
func refusal(err error) string {
	bad, ok := errors.AsType[*pgconn.ParseConfigError](err)
	if !ok {
		return "the driver cannot read it"
	}
	bad.ConnString = ""
	_, reason, _ := strings.Cut(bad.Error(), "``: ")
	switch {
	case strings.HasPrefix(reason, "failed to parse as URL"):
		return "the driver cannot take it apart, want postgres://user@host/database with special characters percent-encoded"
	case strings.HasPrefix(reason, "failed to parse as keyword/value"):
		return "the driver cannot take it apart, want keywords such as host=/run/postgresql dbname=app, blanks in single quotes"
	case reason == "" || strings.Contains(reason, "@"):
		return "the driver cannot read it"
	}
	reason = strings.ReplaceAll(reason, "strconv.ParseInt: parsing ", "")
	for about, want := range wants() {
		if strings.Contains(reason, about) {
			reason += ", want " + want
		}
	}
	return reason
}

// wants are what the driver takes for the parameters that it says no more of than that they are wrong.
func wants() map[string]string {
	return map[string]string{
		"invalid port":            "1 to 65535",
		"connect_timeout":         "whole seconds",
		"default_query_exec_mode": "cache_statement, cache_describe, describe_exec, exec or simple_protocol",
		"sslmode is invalid":      "disable, allow, prefer, require, verify-ca or verify-full",
		"target_session_attrs":    "any, read-write, read-only, primary, standby or prefer-standby",
	}
}

// besides names the variables from which the driver takes what the URL leaves open: the mistake may be there.
func besides() string {
	var set []string
	for _, name := range []string{
		"PGPORT", "PGCONNECT_TIMEOUT", "PGTARGETSESSIONATTRS", "PGSERVICE", "PGSERVICEFILE",
		"PGSSLMODE", "PGSSLCERT", "PGSSLCERTMODE", "PGSSLKEY", "PGSSLROOTCERT", "PGSSLNEGOTIATION",
		"PGMINPROTOCOLVERSION", "PGMAXPROTOCOLVERSION", "PGCHANNELBINDING", "PGREQUIREAUTH",
	} {
		if os.Getenv(name) != "" {
			set = append(set, name)
		}
	}
	if len(set) == 0 {
		return ""
	}
	return "; what the URL leaves open comes from " + strings.Join(set, ", ")
}
