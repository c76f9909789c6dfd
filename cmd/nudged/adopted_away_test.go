package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"nudged/internal/smtptest"
)

// A daemon that another environment has its database adopted away from plans nothing anew there, and goes on
// when it is adopted back.
func TestDaemonPlansNothingAnewInADatabaseAdoptedAway(t *testing.T) {
	s := newSite(t, smtptest.Config{})
	staging := filepath.Join(s.dir, "staging.yml")
	if err := os.WriteFile(staging, []byte(strings.Replace(s.readConfig(), "environment: test", "environment: staging", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	s.due(1)
	p := s.start().ready()
	s.waitRows("sent/", 1)
	plannedByStaging := func() (is bool) {
		t.Helper()
		err := s.db.QueryRow(t.Context(), `SELECT planned_by = 4711 AND wake_at > now() FROM nudged.schedules`).Scan(&is)
		if err != nil {
			t.Fatal(err)
		}
		return is
	}

	s.want("is adopted", "adopt", "--config.file="+staging, "--why", "a rehearsal")
	s.wait("the refusal", func() bool { return strings.Contains(p.log.String(), `msg="the pass failed; `) })
	s.exec(`UPDATE nudged.schedules SET planned_by = 4711`)
	s.wait("a sweep that is refused", func() bool {
		if !plannedByStaging() {
			t.Fatal("what staging planned is planned anew")
		}
		return strings.Contains(p.log.String(), `msg="requests are not planned anew yet" err="plan requests anew: this database is adopted for the environment \"staging\"`)
	})
	var noted bool
	if err := s.db.QueryRow(t.Context(), `SELECT planned_with IS NOT NULL FROM nudged.installation`).Scan(&noted); err != nil || noted {
		t.Errorf("noted what it plans with: %t, %v", noted, err)
	}
	s.want("is adopted", "adopt", "--why", "the rehearsal is over")
	p.ready()
	s.wait("it to be planned anew", func() bool { return !plannedByStaging() })
}
