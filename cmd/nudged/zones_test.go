package main_test

import (
	"archive/zip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"nudged/internal/smtptest"
)

// writeZones makes a folder of zone data: Europe/Paris by the clock of some zone, and a version where there is one.
func writeZones(t *testing.T, dir, version, paris string) {
	t.Helper()
	files := map[string][]byte{"Europe/Paris": zoneFile(t, paris), "Asia/Tokyo": zoneFile(t, "Asia/Tokyo")}
	if version != "" {
		files["tzdata.zi"] = []byte("# version " + version + "\n# This zic input file is in the public domain.\n")
	}
	for name, data := range files {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func zoneFile(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("../../cadence/testdata/zoneinfo", name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// zipZones makes a file of a folder of zone data.
func zipZones(t *testing.T, file, dir string, method uint16) {
	t.Helper()
	out, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	archive := zip.NewWriter(out)
	for _, name := range []string{"Asia/Tokyo", "Europe/Paris"} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		var w io.Writer
		if w, err = archive.CreateHeader(&zip.FileHeader{Name: name, Method: method}); err == nil {
			_, err = w.Write(data)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
}

// linkZones makes a folder of links to the folders of zone data, as a volume of Kubernetes has them.
func linkZones(t *testing.T, link, dir string) {
	t.Helper()
	err := os.Mkdir(link, 0o700)
	for _, name := range []string{"Asia", "Europe"} {
		err = errors.Join(err, os.Symlink(filepath.Join(dir, name), filepath.Join(link, name)))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// tzdata is what the program says of its zone data.
func (s *site) tzdata() string {
	s.t.Helper()
	out, stderr, status := s.command("version")
	_, data, found := strings.Cut(out, "tzdata ")
	if status != 0 || !found {
		s.t.Errorf("version: status %d, %s%s", status, out, stderr)
	}
	return strings.TrimSuffix(data, ")\n")
}

// planned returns when the request wakes and what the last sweep noted, either nothing while there is none.
func (s *site) planned() (wake time.Time, with string) {
	s.t.Helper()
	const query = `SELECT coalesce((SELECT max(wake_at) FROM nudged.schedules WHERE wake_at > '-infinity'), 'epoch'),
		(SELECT coalesce(planned_with, '') FROM nudged.installation)`
	if err := s.db.QueryRow(s.t.Context(), query).Scan(&wake, &with); err != nil {
		s.t.Fatal(err)
	}
	return wake, with
}

// waitSwept is planned after a sweep and a pass.
func (s *site) waitSwept() (wake time.Time, with string) {
	s.t.Helper()
	s.wait("a sweep and a pass", func() bool { wake, with = s.planned(); return wake.Unix() > 0 && with != "" })
	return wake, with
}

// newZonesSite has one request whose next slot is at nine by the clock of Europe/Paris.
func newZonesSite(t *testing.T) *site {
	t.Helper()
	s := newSite(t, smtptest.Config{})
	s.configure(`defaults: {time_zone: Europe/Paris}
cadences: {default: {after: [30d], at: "09:00"}}
`)
	s.due(1)
	s.zones = filepath.Join(t.TempDir(), "zones")
	return s
}

// Zone data that are put in place under a running daemon are not told as those that it plans by before it
// has them: a reload goes on by what it started with, and the next start plans everything anew.
func TestZoneDataUpgradedUnderTheDaemon(t *testing.T) {
	s := newZonesSite(t)
	writeZones(t, s.zones, "2025b", "Europe/Paris")
	p := s.start().ready()
	before, with := s.waitSwept()
	const doubt = "The daemon has other time zone data"
	if out, _, _ := s.command("explain", "r-1"); strings.Contains(out, doubt) {
		t.Errorf("explain doubts equal zone data:\n%s", out)
	}

	writeZones(t, s.zones, "2025c", "Europe/London")
	if answer := p.reload(); answer != "ok\n" {
		t.Fatalf("the reload answers %s", answer)
	}
	// Another sweep and another pass, behind the reload.
	s.exec(`UPDATE nudged.schedules SET planned_by = planned_by + 1, wake_at = '-infinity'`)
	s.exec(`UPDATE nudged.installation SET planned_with = NULL`)
	wake, now := s.waitSwept()
	if !wake.Equal(before) || now != with {
		t.Errorf("after a reload: planned for %s with %q, want %s with %q", wake, now, before, with)
	}
	s.want(doubt, "explain", "r-1")
	p.stop()

	s.start().ready()
	s.wait("the request to be planned anew", func() bool {
		wake, now = s.planned()
		return wake.Equal(before.Add(time.Hour)) && now != with
	})
	if out, _, _ := s.command("explain", "r-1"); strings.Contains(out, doubt) || !strings.Contains(out, wake.UTC().Format("15:04")) {
		t.Errorf("explain does not tell the slot of %s:\n%s", wake, out)
	}
}

// What $ZONEINFO names is told apart by its content: without a version, in a zip, and wherever it lies.
func TestZoneDataAreToldApartByContent(t *testing.T) {
	s := newZonesSite(t)
	writeZones(t, s.zones, "", "Europe/Paris")
	first := s.tzdata()
	p := s.start().ready()
	before, with := s.waitSwept()
	p.stop()

	// The same elsewhere, and in a file: nothing is planned anew.
	folder := s.zones
	moved, packed, linked := filepath.Join(s.dir, "moved"), filepath.Join(s.dir, "zones.zip"), filepath.Join(s.dir, "linked")
	writeZones(t, moved, "", "Europe/Paris")
	zipZones(t, packed, moved, zip.Store)
	linkZones(t, linked, moved)
	for _, s.zones = range []string{moved, packed, linked} {
		if got, want := s.tzdata(), strings.ReplaceAll(first, folder, s.zones); got != want {
			t.Errorf("the same zone data are %q, want %q", got, want)
		}
		s.exec(`UPDATE nudged.installation SET planned_with = NULL`)
		p = s.start().ready()
		_, now := s.waitSwept()
		p.stop()
		if now != with || strings.Contains(p.log.String(), "are planned anew") {
			t.Errorf("with %s planned with %q, want %q\n%s", s.zones, now, with, p.log)
		}
	}

	s.zones = folder
	writeZones(t, s.zones, "", "Europe/London")
	if now := s.tzdata(); now == first {
		t.Errorf("other zone data are %q too", now)
	}
	s.start().ready()
	s.wait("the request to be planned anew", func() bool { wake, _ := s.planned(); return wake.Equal(before.Add(time.Hour)) })
}

// Zone data that a person asks for and that cannot be had are a mistake, and never replaced by the host's.
func TestZoneDataThatCannotBeRead(t *testing.T) {
	s := newZonesSite(t)
	dir := t.TempDir()
	empty, garbage, text, packed := filepath.Join(dir, "empty"), filepath.Join(dir, "garbage"), filepath.Join(dir, "zones.zip"), filepath.Join(dir, "packed.zip")
	writeZones(t, garbage, "2025c", "Europe/Paris")
	zipZones(t, packed, garbage, zip.Deflate)
	err := os.WriteFile(filepath.Join(garbage, "Europe/Paris"), []byte("no zone"), 0o600)
	if err == nil {
		err = os.Mkdir(empty, 0o700)
	}
	if err == nil {
		err = os.WriteFile(text, []byte("no zip"), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	for value, reason := range map[string]string{
		"/nonexistent": "no such file or directory",
		"\x01":         "no such file or directory",
		text + "x":     "no such file or directory",
		s.config:       "not a directory",
		empty:          "no such file or directory",
		garbage:        "malformed time zone information",
		text:           "not a valid zip file",
		packed:         "it is compressed",
	} {
		s.zones = value
		for _, command := range []string{"check-config", "run --web.listen-address=127.0.0.1:0", "run --shadow", "explain r-1", "plan --cadence=default"} {
			out, stderr, status := s.command(strings.Fields(command)...)
			if status != 2 || out != "" || strings.Count(stderr, "\n") != 1 || !strings.HasPrefix(stderr, "nudged: ZONEINFO: ") ||
				!strings.Contains(stderr, reason) || !strings.HasSuffix(stderr, "(got "+strconv.Quote(value)+")\n") {
				t.Errorf("ZONEINFO=%q %s: status %d, %s%s; want %s", value, command, status, out, stderr, reason)
			}
		}
		for _, output := range []string{"table", "json"} {
			out, stderr, status := s.command("version", "--output="+output)
			if status != 2 || !strings.Contains(out, "unusable") || !strings.HasPrefix(stderr, "nudged: ZONEINFO: ") {
				t.Errorf("ZONEINFO=%q version: status %d, %s%s", value, status, out, stderr)
			}
		}
	}
}
