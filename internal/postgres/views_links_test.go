package postgres_test

import (
	"testing"
	"time"

	"nudged/scheduler"
)

// woken counts the cases of these that the next pass looks at.
func (v *overViews) woken(ids ...string) int {
	v.t.Helper()
	return v.count(`SELECT count(*) FROM nudged.schedules WHERE request_id = ANY ($1) AND wake_at = '-infinity'`, ids)
}

// A link that moves to another case, and a case that takes another id, are seen on both sides.
func TestMovesUnderViews(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		move    string
		touched []string
	}{
		"a link to another case": {`UPDATE app.upload_links SET case_id = 43 WHERE case_id = 42`, []string{"42", "43"}},
		"a case to another id":   {`UPDATE app.cases SET id = 45 WHERE id = 44`, []string{"44", "45"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := newOverViews(t)
			v.case42()
			v.write(`INSERT INTO app.cases (id, office_id, stage, client_email, subject) VALUES (44, 7, 'waiting', 'z@example.com', 'T')`)
			v.pass("a")
			if n := v.woken(tt.touched...); n != 0 {
				t.Fatalf("%d of %v wait before the move", n, tt.touched)
			}
			v.write(tt.move)
			if n := v.woken(tt.touched...); n != 2 {
				t.Errorf("%d of %v are touched, want both", n, tt.touched)
			}
		})
	}
}

// A link that is moved to a waiting case has its mail sent there, and none where it was.
func TestLinkMovedToAWaitingCase(t *testing.T) {
	t.Parallel()
	v := newOverViews(t)
	v.write(`INSERT INTO app.cases (id, office_id, stage, client_email, subject)
		VALUES (1, 7, 'complete', 'a@example.com', 'T'), (2, 7, 'waiting', 'b@example.com', 'T')`)
	v.write(`INSERT INTO app.upload_links (case_id, address, created_at) VALUES (1, 'https://example.com/1', now() - interval '3 days 1 minute')`)
	if tasks := v.pass("a").Tasks; len(tasks) != 0 {
		t.Fatalf("%d tasks before the move", len(tasks))
	}
	v.write(`UPDATE app.upload_links SET case_id = 2`)
	if tasks := v.pass("a").Tasks; len(tasks) != 1 || tasks[0].Request.ID != "2" {
		t.Errorf("after the move: %d tasks, want one of case 2", len(tasks))
	}
}

// Of several links the view gives the one that can be used, the newest of these, and without any the newest.
func TestWhichLinkOverViews(t *testing.T) {
	t.Parallel()
	v := newOverViews(t)
	const day = `now() - interval '1 day'`
	tests := map[string]struct{ links, want string }{
		"both live":                  {`('old', NULL, NULL), ('new', NULL, NULL)`, "new"},
		"the newer withdrawn":        {`('old', NULL, NULL), ('new', NULL, ` + day + `)`, "old"},
		"the newer expired":          {`('old', 'infinity', NULL), ('new', ` + day + `, NULL)`, "old"},
		"the older withdrawn":        {`('old', NULL, ` + day + `), ('new', NULL, NULL)`, "new"},
		"both withdrawn":             {`('old', NULL, ` + day + `), ('new', NULL, ` + day + `)`, "new"},
		"one withdrawn, one expired": {`('old', ` + day + `, NULL), ('new', NULL, ` + day + `)`, "new"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			v.write(`DELETE FROM app.cases`)
			v.write(`INSERT INTO app.cases (id, office_id, stage, client_email, subject) VALUES (42, 7, 'waiting', 'a@example.com', 'T')`)
			v.write(`INSERT INTO app.upload_links (case_id, address, created_at, valid_until, withdrawn_at)
				SELECT 42, address, now() - CASE address WHEN 'old' THEN interval '5 days' ELSE interval '2 days' END, valid_until::timestamptz, withdrawn_at::timestamptz
				FROM (VALUES ` + tt.links + `) AS l (address, valid_until, withdrawn_at)`)
			if n := v.count(`SELECT count(*) FROM nudged.links WHERE request_id = '42'`); n != 1 {
				t.Errorf("the view gives %d links, want 1", n)
			}
			if got := v.value(`SELECT url FROM nudged.links`); got != tt.want {
				t.Errorf("the view gives the %s link, want the %s one", got, tt.want)
			}
		})
	}
}

// send has the one mail that is due sent, which must be of this link and slot.
func (v *overViews) send(want string) {
	v.t.Helper()
	tasks := v.pass("a").Tasks
	if len(tasks) != 1 || tasks[0].Link.URL+" "+tasks[0].Slot.Name != want {
		v.t.Fatalf("got %d tasks, want %s", len(tasks), want)
	}
	v.settle(scheduler.Batch{HandOffs: []scheduler.HandOff{handOff(tasks[0])}})
	v.settle(scheduler.Batch{Settlements: []scheduler.Settlement{settlement(tasks[0], sent)}})
}

// wantWake wants case 42 to wake for slot 7d of this link.
func (v *overViews) wantWake(address string) {
	v.t.Helper()
	if n := v.count(`SELECT count(*) FROM nudged.schedules, app.upload_links
		WHERE address = $1 AND wake_at = date_trunc('second', created_at) + interval '7 days'`, address); n != 1 {
		v.t.Errorf("the case does not wake for slot 7d of the %s link", address)
	}
}

// With the newer link withdrawn, the series of the older one goes on where it stood: what went out for it does
// not go out again, and its next slot does.
func TestBackToTheOlderLinkOverViews(t *testing.T) {
	t.Parallel()
	v := newOverViews(t)
	v.policy.Limits.MinGap = time.Nanosecond
	v.write(`INSERT INTO app.cases (id, office_id, stage, client_email, subject) VALUES (42, 7, 'waiting', 'a@example.com', 'T')`)
	v.write(`INSERT INTO app.upload_links (case_id, address, created_at) VALUES (42, 'old', now() - interval '3 days 2 minutes')`)
	v.send("old 3d")
	v.write(`INSERT INTO app.upload_links (case_id, address, created_at) VALUES (42, 'new', now() - interval '3 days 1 minute')`)
	v.send("new 3d")
	v.write(`UPDATE app.upload_links SET withdrawn_at = now() WHERE address = 'new'`)
	if result := v.pass("a"); result.Fresh != 1 || len(result.Tasks) != 0 {
		t.Errorf("back to the older link: %d looked at, %d tasks, want 1 and none", result.Fresh, len(result.Tasks))
	}
	v.wantWake("old")
}

// A newer link that expires is left for the older one when its own next slot would have been due.
func TestNewerLinkExpiresOverViews(t *testing.T) {
	t.Parallel()
	v := newOverViews(t)
	v.policy.Limits.MinGap = time.Nanosecond
	v.write(`INSERT INTO app.cases (id, office_id, stage, client_email, subject) VALUES (42, 7, 'waiting', 'a@example.com', 'T')`)
	v.write(`INSERT INTO app.upload_links (case_id, address, created_at, valid_until)
		VALUES (42, 'old', now() - interval '7 days 1 minute', NULL), (42, 'new', now() - interval '3 days 1 minute', now() + interval '1 hour')`)
	v.send("new 3d")
	v.wantWake("new")
	v.exec(`ALTER TABLE app.upload_links DISABLE TRIGGER USER`) // time passes
	v.exec(`UPDATE app.upload_links SET valid_until = now() WHERE address = 'new'`)
	v.exec(`UPDATE nudged.schedules SET wake_at = now()`)
	v.send("old 7d")
}
