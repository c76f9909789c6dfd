package devbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"nudged/cadence"
	"nudged/internal/pgserver"
	"nudged/migrations"
	"nudged/scheduler"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newFolder returns one that is short and that an unprivileged database can reach.
func newFolder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "devbox-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	return dir
}

func start(t *testing.T, dir string, out *output) *Box {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	box, err := Start(ctx, Config{Dir: dir, Out: out, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return box
}

func stop(t *testing.T, box *Box) {
	t.Helper()
	if err := box.Stop(context.Background()); err != nil {
		t.Error(err)
	}
}

func TestSecondStartKeepsEverythingAndAddsNothing(t *testing.T) {
	t.Parallel()
	dir := newFolder(t)

	box := start(t, dir, new(output))
	if _, err := migrations.Up(t.Context(), box.DatabaseURL()); err != nil {
		t.Fatal(err)
	}
	if err := box.Seed(t.Context()); err != nil {
		t.Fatal(err)
	}
	conn := connect(t, box)
	want := []string{"sample-completed", "sample-due-1", "sample-due-2", "sample-expired", "sample-rejected", "sample-soon"}
	if diff := cmp.Diff(want, requestIDs(t, conn)); diff != "" {
		t.Errorf("sample requests (-want +got):\n%s", diff)
	}
	planned(t, conn)
	if _, err := conn.Exec(t.Context(), "DELETE FROM nudged.requests WHERE id <> 'sample-soon'"); err != nil {
		t.Fatal(err)
	}
	send(t, box, "one@client.example", "Subject: one\r\n\r\nBody\r\n")
	stop(t, box)

	box = start(t, dir, new(output))
	defer stop(t, box)
	if _, err := migrations.Up(t.Context(), box.DatabaseURL()); err != nil {
		t.Fatal(err)
	}
	if err := box.Seed(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"sample-soon"}, requestIDs(t, connect(t, box))); diff != "" {
		t.Errorf("requests after the second start (-want +got):\n%s", diff)
	}
	if files := mails(t, box); len(files) != 1 {
		t.Errorf("the inbox holds %v after the second start, want the one mail", files)
	}
}

// planned holds the samples against the policy that nudged will apply to them.
func planned(t *testing.T, conn *pgx.Conn) {
	t.Helper()
	every := "7d"
	rule, err := cadence.Parse("default", cadence.Definition{After: []string{"3d", "7d", "14d"}, ThenEvery: &every})
	if err != nil {
		t.Fatal(err)
	}
	policy := scheduler.Policy{
		Cadences:       map[string]*cadence.Cadence{"default": rule},
		DefaultCadence: "default",
		DefaultZone:    time.UTC,
		Limits:         scheduler.Limits{MaxLateness: 48 * time.Hour},
	}
	rows, err := conn.Query(t.Context(), `
		SELECT r.id, r.status, r.recipient_email, r.time_zone, l.created_at, l.expires_at, now()
		FROM nudged.requests r JOIN nudged.links l ON l.request_id = r.id`)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	var (
		id      string
		now     time.Time
		request scheduler.Request
		link    scheduler.Link
	)
	into := []any{&id, &request.Status, &request.RecipientEmail, &request.TimeZone, &link.CreatedAt, &link.ExpiresAt, &now}
	_, err = pgx.ForEachRow(rows, into, func() error {
		decision := policy.Plan(scheduler.Input{Now: now, AdoptedAt: now, RequestID: id, Request: &request, Link: &link})
		switch wait := decision.Wake.Sub(now); {
		case decision.Claim != nil:
			got[id] = "claim " + decision.Claim.Slot.Name
		case !decision.Wake.IsZero() && wait <= 10*time.Second:
			got[id] = "within ten seconds"
		case len(decision.Verdicts) > 0:
			got[id] = fmt.Sprintf("skip %s %s", decision.Verdicts[0].Slot.Name, decision.Verdicts[0].Reason)
		default:
			got[id] = "nothing"
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"sample-due-1":     "claim 3d",
		"sample-due-2":     "claim 3d",
		"sample-rejected":  "claim 3d",
		"sample-soon":      "within ten seconds",
		"sample-completed": "nothing",
		"sample-expired":   "skip 3d link_expired",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("plan of the samples (-want +got):\n%s", diff)
	}
}

func TestOneFolderHasOneBox(t *testing.T) {
	t.Parallel()
	dir := newFolder(t)
	box := start(t, dir, new(output))
	defer stop(t, box)
	_, err := Start(t.Context(), Config{Dir: dir, Out: new(output), Logger: slog.New(slog.DiscardHandler)})
	if _, ok := errors.AsType[*pgserver.InUseError](err); !ok {
		t.Fatalf("second box = %v, want an InUseError", err)
	}
	if strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), dir) {
		t.Errorf("error %q is not one line that names the folder", err)
	}
	connect(t, box) // the first was left alone
}

func TestTakenSMTPPortStopsTheDatabaseAgain(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	dir := newFolder(t)
	config := Config{Dir: dir, Out: new(output), Logger: slog.New(slog.DiscardHandler), SMTPPort: taken.Addr().(*net.TCPAddr).Port}
	if _, err := Start(t.Context(), config); err == nil || strings.Contains(err.Error(), "\n") {
		t.Fatalf("Start on a taken port = %v, want one line", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "postgres", "data", "postmaster.pid")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the database still runs: %v", err)
	}
}

func connect(t *testing.T, box *Box) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), box.DatabaseURL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

func requestIDs(t *testing.T, conn *pgx.Conn) []string {
	t.Helper()
	rows, err := conn.Query(t.Context(), "SELECT id FROM nudged.requests ORDER BY id")
	if err != nil {
		t.Fatal(err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return ids
}

// output is written by the inbox and read by the test.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}
