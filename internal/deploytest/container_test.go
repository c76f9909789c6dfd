package deploytest

import (
	"crypto/tls"
	"debug/elf"
	"encoding/pem"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"nudged/internal/pgtest"
	"nudged/internal/smtptest"
)

func TestImageHoldsOneStaticProgram(t *testing.T) {
	from, list := finalStage(t)
	if from != "scratch" {
		t.Errorf("FROM %s, want scratch", from)
	}
	uid, gid, _ := strings.Cut(one(t, list, "USER"), ":")
	if number(t, uid) == 0 || number(t, gid) == 0 {
		t.Errorf("USER %s:%s is root", uid, gid)
	}
	im := newImage(t)
	var files []string
	err := filepath.WalkDir(im.root, func(file string, entry fs.DirEntry, err error) error {
		if !entry.IsDir() {
			files = append(files, strings.TrimPrefix(file, im.root))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(copied(t))), files); diff != "" {
		t.Errorf("files of the image (-copied +found)\n%s", diff)
	}
	entry := texts(t, one(t, list, "ENTRYPOINT"))[0]
	binary, err := elf.Open(filepath.Join(im.root, entry))
	if err != nil {
		t.Fatal(err)
	}
	defer binary.Close()
	libraries, err := binary.ImportedLibraries()
	if err != nil || len(libraries) > 0 {
		t.Errorf("the program loads %v (%v)", libraries, err)
	}
	for _, part := range binary.Progs {
		if part.Type == elf.PT_INTERP {
			t.Error("the program needs a loader")
		}
	}
}

func TestImageIsLabelled(t *testing.T) {
	_, list := finalStage(t)
	labels := one(t, list, "LABEL")
	for label, argument := range map[string]string{"version": "VERSION", "revision": "REVISION", "created": "CREATED", "source": "SOURCE"} {
		if want := fmt.Sprintf(`org.opencontainers.image.%s="${%s}"`, label, argument); !strings.Contains(labels, want) {
			t.Errorf("LABEL lacks %s", want)
		}
		if !slices.ContainsFunc(list, func(i instruction) bool {
			name, _, _ := strings.Cut(i.rest, "=")
			return i.word == "ARG" && name == argument
		}) {
			t.Errorf("the last stage lacks ARG %s: the label would be empty", argument)
		}
	}
}

// In an empty root the program has no zone data but its own.
func TestImageKnowsVersionAndZones(t *testing.T) {
	im := newImage(t)
	got := succeed(t, im.command("version"))
	if !strings.HasPrefix(got, "nudged "+imageVersion+" (revision "+imageRevision+", go") || !strings.Contains(got, "tzdata embedded in go") {
		t.Errorf("version prints %q", got)
	}
	got = succeed(t, im.command("plan", "--cadence=default", "--anchor=2026-03-02T15:00:00Z", "--zone=America/New_York", "--count=2", "--output=json"))
	// Between the two slots New York goes from winter to summer time.
	for _, want := range []string{`"local": "2026-03-05T10:00:00-05:00"`, `"local": "2026-03-09T10:00:00-04:00"`} {
		if !strings.Contains(got, want) {
			t.Errorf("the plan lacks %s:\n%s", want, got)
		}
	}
}

// The whole daemon in an empty root, under its user: it checks the relay's certificate against the
// authorities at the place where the Dockerfile puts them.
func TestImageSendsOverVerifiedTLS(t *testing.T) {
	im := newImage(t)
	relay := smtptest.Start(t, smtptest.Config{ImplicitTLS: true})
	url := pgtest.New(t)
	makeDue(t, url)
	write(t, filepath.Join(im.root, "etc/nudged/nudged.yml"), fmt.Sprintf(`environment: test
poll: {every: 200ms}
smtp: {host: 127.0.0.1, port: %d, tls: implicit}
mail: {from: "Example <reminders@example.com>"}
`, relay.Port()))
	daemon := func() *process {
		cmd := im.command()
		cmd.Env = append(cmd.Env, "NUDGED_WEB_LISTEN_ADDRESS=127.0.0.1:0", "NUDGED_DATABASE_URL="+url)
		return start(t, cmd)
	}

	wary := daemon()
	wary.logs("certificate signed by unknown authority")
	if state := wary.end(syscall.SIGTERM); !state.Success() {
		t.Errorf("the daemon ends with %s:\n%s", state, wary.log.String())
	}
	if n := len(relay.Bodies()); n != 0 {
		t.Fatalf("%d mails went to a relay that nobody vouches for", n)
	}

	trust(t, im, relay)
	trusting := daemon()
	trusting.logs("outcome=sent")
	if err := relay.WaitAccepted(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if state := trusting.end(syscall.SIGTERM); !state.Success() {
		t.Errorf("the daemon ends with %s:\n%s", state, trusting.log.String())
	}
}

// trust adds the relay's certificate to the image's authorities.
func trust(t *testing.T, im *image, relay *smtptest.Server) {
	t.Helper()
	conn, err := tls.Dial("tcp", net.JoinHostPort(relay.Host(), fmt.Sprint(relay.Port())), relay.ClientTLS())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	var authorities string
	for target := range copied(t) {
		if strings.HasSuffix(target, ".crt") {
			authorities = filepath.Join(im.root, target)
		}
	}
	if authorities == "" {
		t.Fatal("the image has no authorities")
	}
	before := read(t, authorities)
	if n := strings.Count(before, "BEGIN CERTIFICATE"); n < 50 {
		t.Errorf("%d authorities, want those of the public", n)
	}
	der := conn.ConnectionState().PeerCertificates[0].Raw
	write(t, authorities, before+string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
}

// makeDue inserts a request whose slot 3d fell due a minute ago.
func makeDue(t *testing.T, url string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	for _, sql := range []string{
		`INSERT INTO nudged.requests (id, account_id, status, recipient_email, title) VALUES ('r', 'a', 'pending', 'r@example.net', 'Tax return')`,
		`INSERT INTO nudged.links (request_id, url, created_at) VALUES ('r', 'https://example.com/u', now() - interval '3 days 1 minute')`,
	} {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
}
