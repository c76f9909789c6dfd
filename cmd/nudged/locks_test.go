package main_test

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// locks holds up the commit that would put a reminder into a state.
type locks struct {
	s    *site
	conn *pgx.Conn
}

// blockAt makes every write of a reminder in this state wait until release: a trigger of the test
// asks for an advisory lock that the test holds.
func (s *site) blockAt(state string) *locks {
	s.t.Helper()
	ctx := context.Background()
	s.exec(fmt.Sprintf(`
		CREATE FUNCTION public.hold_up() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN
			IF NEW.state = '%s' THEN PERFORM pg_advisory_xact_lock(7); END IF;
			RETURN NEW;
		END $$;
		CREATE TRIGGER hold_up BEFORE INSERT OR UPDATE ON nudged.reminders
		FOR EACH ROW EXECUTE FUNCTION public.hold_up()`, state))
	conn, err := pgx.Connect(ctx, s.url)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = conn.Close(ctx) })
	if _, err := conn.Exec(ctx, `SELECT pg_advisory_lock(7)`); err != nil {
		s.t.Fatal(err)
	}
	return &locks{s: s, conn: conn}
}

// waitHeld waits until a daemon's commit is held up.
func (l *locks) waitHeld() {
	l.s.t.Helper()
	l.s.wait("a commit to be held up", func() bool { return l.held() > 0 })
}

func (l *locks) held() int {
	l.s.t.Helper()
	var n int
	err := l.s.db.QueryRow(context.Background(), `SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
		AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`).Scan(&n)
	if err != nil {
		l.s.t.Fatal(err)
	}
	return n
}

// abort ends the held up transactions without their commit, as a crash before it does.
func (l *locks) abort() {
	l.s.t.Helper()
	l.s.exec(`SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
		AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`)
	l.s.wait("the held up transactions to end", func() bool { return l.held() == 0 })
}

// release lets every commit through from now on.
func (l *locks) release() {
	l.s.t.Helper()
	if _, err := l.conn.Exec(context.Background(), `SELECT pg_advisory_unlock(7)`); err != nil {
		l.s.t.Fatal(err)
	}
}
