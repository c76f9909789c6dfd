package migrations_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"nudged/internal/pgtest"
	"nudged/migrations"
)

// envUp makes TestUpHere migrate the database of this URL.
const envUp = "NUDGED_TEST_UP"

func TestUpAppliesOnce(t *testing.T) {
	t.Parallel()
	latest, err := migrations.Latest()
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]func(url string) (applied int, err error){
		"goroutines": func(url string) (int, error) {
			applied, err := migrations.Up(t.Context(), url)
			return len(applied), err
		},
		"processes": func(url string) (int, error) {
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestUpHere$", "-test.v")
			cmd.Env = append(os.Environ(), envUp+"="+url)
			out, err := cmd.CombinedOutput()
			if err != nil {
				return 0, errors.New(string(out))
			}
			_, after, _ := strings.Cut(string(out), "applied=")
			count, _, _ := strings.Cut(after, "\n")
			return strconv.Atoi(count)
		},
	}
	for name, up := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := pgtest.Empty(t)
			var (
				group sync.WaitGroup
				mu    sync.Mutex
				total int
			)
			begin := make(chan struct{})
			for range 4 {
				group.Go(func() {
					<-begin
					applied, err := up(url)
					if err != nil {
						t.Error(err)
					}
					mu.Lock()
					defer mu.Unlock()
					total += applied
				})
			}
			close(begin)
			group.Wait()
			if total != int(latest) {
				t.Errorf("%d migrations were applied, want each of %d once", total, latest)
			}
			db := connect(t, url)
			if n := db.count(`SELECT count(*) FROM nudged.schema_migrations WHERE version_id > 0`); n != int(latest) {
				t.Errorf("%d migrations are noted, want %d", n, latest)
			}
			if err := migrations.Check(t.Context(), db); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestUpHere is run by TestUpAppliesOnce, in processes of its own.
func TestUpHere(t *testing.T) {
	url := os.Getenv(envUp)
	if url == "" {
		t.Skip("only for another test")
	}
	applied, err := migrations.Up(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stdout.WriteString("applied=" + strconv.Itoa(len(applied)) + "\n"); err != nil {
		t.Fatal(err)
	}
}

func TestCheckSaysInOneLineWhatToDo(t *testing.T) {
	t.Parallel()
	const (
		newer  = `INSERT INTO nudged.schema_migrations (version_id, is_applied) VALUES (8, true)`
		tooNew = "the schema is at version 8, newer than the 7 this nudged knows: install a newer nudged"
		older  = "the schema is at version 6, this nudged needs 7: run `nudged migrate`"
	)
	readers := func(version, oldest int) string {
		return fmt.Sprintf(`; CREATE OR REPLACE FUNCTION nudged.schema_readers(OUT version bigint, OUT oldest_reader bigint)
			LANGUAGE sql IMMUTABLE AS 'SELECT %d::bigint, %d::bigint'`, version, oldest)
	}
	tests := map[string]struct {
		change string // what is done to a migrated database
		want   string
	}{
		"fits":      {change: `SELECT 1`},
		"no schema": {`DROP SCHEMA nudged CASCADE`, "the database has no schema nudged: run `nudged migrate`"},
		"no table":  {`DROP TABLE nudged.schema_migrations`, "the database has no schema nudged: run `nudged migrate`"},
		"nothing applied": {`DELETE FROM nudged.schema_migrations WHERE version_id > 0`,
			"the database has no schema nudged: run `nudged migrate`"},
		"older": {`DELETE FROM nudged.schema_migrations WHERE version_id = (SELECT max(version_id) FROM nudged.schema_migrations)`,
			older},
		"newer":                       {newer, tooNew},
		"newer, for newer builds":     {newer + readers(8, 8), tooNew},
		"newer, and this build may":   {newer + readers(8, 7), ""},
		"newer, and older builds may": {newer + readers(8, 1), ""},
		"newer than it says":          {newer + readers(9, 7), tooNew},
		"newer, and cannot tell":      {newer + `; DROP FUNCTION nudged.schema_readers()`, tooNew},
		"older, and says anybody may": {`DELETE FROM nudged.schema_migrations WHERE version_id = 7` + readers(6, 1), older},
	}
	if latest, err := migrations.Latest(); err != nil || latest != 7 {
		t.Fatalf("the newest migration is %d (%v): the texts above expect 7", latest, err)
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := migrated(t)
			db.exec(tt.change)
			err := migrations.Check(t.Context(), db)
			if tt.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if _, ok := errors.AsType[*migrations.VersionError](err); !ok || err.Error() != tt.want {
				t.Errorf("got %#v, want a *VersionError that says %q", err, tt.want)
			}
		})
	}
}

func TestCheckTellsAFaultFromAMisfit(t *testing.T) {
	t.Parallel()
	db := migrated(t)
	if err := db.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	err := migrations.Check(t.Context(), db)
	if _, misfit := errors.AsType[*migrations.VersionError](err); misfit || err == nil {
		t.Errorf("got %v from a closed connection, want an error that is no *VersionError", err)
	}
}

func TestStatus(t *testing.T) {
	t.Parallel()
	url := pgtest.Empty(t)
	db := connect(t, url)
	// goose notes times without a zone; the zone of the database must not shift them.
	db.exec(`DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET timezone = %L', current_database(), 'Asia/Tokyo'); END $$`)
	pending, err := migrations.Status(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	for i, m := range pending {
		if m.Version != int64(i+1) || m.Name == "" || !m.AppliedAt.IsZero() {
			t.Errorf("got %+v of an empty database, want version %d pending", m, i+1)
		}
	}
	before := time.Now()
	applied, err := migrations.Up(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	list, err := migrations.Status(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	if latest, _ := migrations.Latest(); len(list) != int(latest) || len(pending) != len(list) || len(applied) != len(list) {
		t.Fatalf("%d pending, %d applied, %d listed, want %d each", len(pending), len(applied), len(list), latest)
	}
	for i, m := range list {
		if m.Version != pending[i].Version || m.Name != pending[i].Name || applied[i].Name != m.Name {
			t.Errorf("got %+v, want the migration that was pending: %+v", m, pending[i])
		}
		if age := m.AppliedAt.Sub(before); age < -time.Minute || age > time.Minute || m.AppliedAt.Location() != time.UTC {
			t.Errorf("%s was applied at %s, want about %s in UTC", m.Name, m.AppliedAt, before.UTC())
		}
	}
	if again, err := migrations.Up(t.Context(), url); err != nil || len(again) != 0 {
		t.Errorf("a second Up applied %v, %v", again, err)
	}
}

// A gap or a duplicate would let two builds mean different things by one version.
func TestFilesAreNumberedWithoutGaps(t *testing.T) {
	t.Parallel()
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	name := regexp.MustCompile(`^(\d{5})_[a-z0-9_]+\.sql$`)
	next := int64(1)
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".sql") {
			continue
		}
		match := name.FindStringSubmatch(e.Name())
		if match == nil {
			t.Errorf("%s: want five digits, an underscore and words", e.Name())
			continue
		}
		if number, err := strconv.ParseInt(match[1], 10, 64); err != nil || number != next {
			t.Errorf("%s: want number %05d", e.Name(), next)
		}
		next++
		text, err := os.ReadFile(e.Name())
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "+goose Down") {
			t.Errorf("%s has a way down", e.Name())
		}
	}
	if latest, err := migrations.Latest(); err != nil || latest != next-1 || latest == 0 {
		t.Errorf("Latest is %d, %v; the newest file is %d", latest, err, next-1)
	}
}

func TestBadURLIsOneLineWithoutThePassword(t *testing.T) {
	t.Parallel()
	urls := map[string]string{
		"port":              "postgres://nudged:hunter2@localhost:port/app",
		"percent":           "postgres://nudged:hunter2%zz@localhost/app",
		"space":             "postgres://nudged:hunter2@local host/app",
		"slash":             "postgres://nudged:hunter2/x@localhost/app",
		"scheme":            "mysql://nudged:hunter2@localhost/app",
		"quote":             "host=localhost password='hunter2 dbname=app",
		"spaced keywords":   "host=localhost password = hunter2 port=x",
		"port and password": "postgres://nudged@localhost:hunter2/app",
		"sslmode":           "postgres://nudged:hunter2@localhost/app?sslmode=maybe",
		"refused":           "postgres://nudged:hunter2@127.0.0.1:1/app",
		"refused twice":     "postgres://nudged:hunter2@127.0.0.1:1,127.0.0.1:2/app",
		"no such host":      "postgres://nudged:hunter2@name.invalid/app",
		"no such socket":    "host=/nowhere password=hunter2",
	}
	for name, url := range urls {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := migrations.Up(t.Context(), url)
			if err == nil {
				t.Fatal("no error")
			}
			if text := err.Error(); strings.ContainsAny(text, "\n\t") || strings.Contains(text, "hunter2") {
				t.Errorf("got %q, want one line without the password", text)
			}
			if _, err := migrations.Status(t.Context(), url); err == nil {
				t.Error("Status has no error")
			}
		})
	}
}

func TestRefusedConnectionNamesEachAddress(t *testing.T) {
	t.Parallel()
	_, err := migrations.Up(t.Context(), "postgres://nudged@127.0.0.1:1,127.0.0.1:2/app")
	if err == nil {
		t.Fatal("no error")
	}
	for _, address := range []string{"127.0.0.1:1 (", "127.0.0.1:2 ("} {
		if n := strings.Count(err.Error(), address); n != 1 {
			t.Errorf("%q names %s %d times, want once", err, address, n)
		}
	}
}
