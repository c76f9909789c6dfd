package migrations_test

import (
	"strings"
	"testing"
)

// The application's role has no right on what nudged writes; the triggers run as their owner.
func TestApplicationNeedsNoRightOnTheLedger(t *testing.T) {
	t.Parallel()
	db := migrated(t)
	role := strings.ReplaceAll(db.list(`SELECT current_database()::text`)[0], "nudged_test", "application")
	db.exec(`CREATE ROLE ` + role)
	t.Cleanup(func() {
		db.exec(`RESET ROLE`)
		db.exec(`DROP OWNED BY ` + role)
		db.exec(`DROP ROLE ` + role)
	})
	db.exec(`GRANT USAGE ON SCHEMA nudged TO ` + role)
	// SELECT of the keys is what WHERE needs, in any schema.
	db.exec(`GRANT INSERT, UPDATE, DELETE, SELECT (id) ON nudged.requests TO ` + role)
	db.exec(`GRANT INSERT, UPDATE, DELETE, SELECT (request_id) ON nudged.links TO ` + role)
	db.exec(`GRANT INSERT, UPDATE, DELETE, SELECT (request_id) ON nudged.documents TO ` + role)

	// A role may leave traps in front of the functions' own schema.
	db.exec(`CREATE SCHEMA trap AUTHORIZATION ` + role)
	db.exec(`SET ROLE ` + role)
	db.exec(`SET search_path = trap, nudged`)
	db.exec(`CREATE TABLE trap.schedules (request_id text CONSTRAINT schedules_pkey PRIMARY KEY, wake_at timestamptz)`)
	db.exec(`CREATE TEMPORARY TABLE links (request_id text)`)
	writes := []string{
		`INSERT INTO nudged.requests (id, account_id, status, recipient_email, title) VALUES ('r-1', 'a', 'pending', 'r@example.com', 'T'), ('r-2', 'a', 'pending', 'r@example.com', 'T')`,
		`INSERT INTO nudged.links (request_id, url) VALUES ('r-1', 'https://example.com/1'), ('r-2', 'https://example.com/2')`,
		`INSERT INTO nudged.documents (request_id, position, title) VALUES ('r-1', 1, 'Passport')`,
		`UPDATE nudged.requests SET status = 'completed' WHERE id = 'r-1'`,
		`UPDATE nudged.links SET revoked_at = now() WHERE request_id = 'r-1'`,
		`SELECT nudged.touch('r-3')`,
		`DELETE FROM nudged.links WHERE request_id = 'r-2'`,
		`DELETE FROM nudged.requests WHERE id = 'r-2'`,
	}
	for _, sql := range writes {
		db.exec(sql)
	}
	refused := []string{
		`SELECT * FROM nudged.schedules`, `UPDATE nudged.schedules SET wake_at = NULL`, `DELETE FROM nudged.reminders`,
		`SELECT * FROM nudged.reminders`, `INSERT INTO nudged.suppressions (address, reason) VALUES ('a@example.com', 'x')`,
		`DROP TABLE nudged.requests`, `SELECT nudged.requests_inserted()`,
	}
	for _, sql := range refused {
		if _, err := db.Exec(t.Context(), sql); err == nil {
			t.Errorf("the application may %s", sql)
		}
	}
	if n := db.count(`SELECT count(*) FROM trap.schedules`); n != 0 {
		t.Errorf("the triggers wrote %d rows into a table of the application", n)
	}
	db.exec(`RESET ROLE`)
	db.exec(`RESET search_path`)
	db.wantTouched("the application's writes", "r-1", "r-2", "r-3")
}

// The functions that run as their owner look nothing up in a schema that others may write to.
func TestFunctionsThatRunAsTheirOwnerFixTheirSearchPath(t *testing.T) {
	t.Parallel()
	db := migrated(t)
	const run = `FROM pg_proc WHERE pronamespace = 'nudged'::regnamespace AND prosecdef`
	if n := db.count(`SELECT count(*) ` + run); n < 7 {
		t.Errorf("%d functions run as their owner, want at least 7", n)
	}
	for _, name := range db.list(`SELECT proname::text ` + run + ` AND NOT coalesce(proconfig @> ARRAY['search_path=nudged, pg_temp'], false)`) {
		t.Errorf("%s looks things up in the caller's schemas", name)
	}
}
