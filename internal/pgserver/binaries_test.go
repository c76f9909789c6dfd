package pgserver

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// programs is a bin folder with scripts that are PostgreSQL 18 by name only, as tar and xz.
//
//go:embed testdata/programs.txz
var programs []byte

func TestParseMajor(t *testing.T) {
	for version, want := range map[string]int{
		"postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)\n": 15,
		"postgres (PostgreSQL) 18.3\n":                           18,
		"postgres (PostgreSQL) 19beta1\n":                        19,
		"postgres (PostgreSQL) 20devel\n":                        20,
	} {
		if got, err := parseMajor(version); err != nil || got != want {
			t.Errorf("parseMajor(%q) = %d, %v, want %d", version, got, err, want)
		}
	}
	for _, version := range []string{"", "postgres", "postgres (PostgreSQL) soon", "EDB 15.3"} {
		if got, err := parseMajor(version); err == nil {
			t.Errorf("parseMajor(%q) = %d, want an error", version, got)
		}
	}
}

func TestVariableNamesTheProgramsAlone(t *testing.T) {
	empty := t.TempDir()
	t.Setenv(EnvBin, empty)
	_, err := Start(t.Context(), Config{Dir: folder(t)})
	wantOneLine(t, err, EnvBin, empty, "initdb")
}

func TestProgramsOnThePathComeFirst(t *testing.T) {
	t.Setenv(EnvBin, "")
	bin := fakePrograms(t, "11.4")
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	found, err := findBinaries(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	if found.major != 11 {
		t.Errorf("found %+v, want those on the PATH", found)
	}
}

func TestProgramsThatFitTheDataComeBeforeThose(t *testing.T) {
	t.Setenv(EnvBin, "")
	t.Setenv("PATH", fakePrograms(t, "11.4")+":"+os.Getenv("PATH"))
	all, err := installed(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 2 {
		t.Skip("PostgreSQL is installed on the PATH only")
	}
	got, err := findBinaries(t.Context(), strconv.Itoa(all[1].major))
	if err != nil {
		t.Fatal(err)
	}
	if got != all[1] {
		t.Errorf("found %+v, want %+v, which made the data", got, all[1])
	}
	_, err = findBinaries(t.Context(), "9")
	wantOneLine(t, err, "PostgreSQL 9", "version 11", EnvBin)
}

func fakePrograms(t *testing.T, version string) string {
	t.Helper()
	bin := t.TempDir()
	for name, script := range map[string]string{
		"postgres": "#!/bin/sh\necho 'postgres (PostgreSQL) " + version + "'\n",
		"initdb":   "#!/bin/sh\nexit 1\n",
	} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return bin
}

func TestFetchFromClosedNetworkIsOneLine(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close() // nobody listens there now
	f := fetcher{repository: "http://" + address, cache: t.TempDir(), probe: 5 * time.Second, download: time.Minute}
	_, err = f.fetch(t.Context())
	if !errors.Is(err, ErrNotInstalled) {
		t.Fatalf("fetch = %v, want ErrNotInstalled", err)
	}
	wantOneLine(t, err, "apt-get install postgresql", "brew install postgresql", EnvBin)
}

func TestFetchFromSilentNetworkIsBounded(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0") // accepts, and never says a word
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	f := fetcher{repository: "http://" + l.Addr().String(), cache: t.TempDir(), probe: 100 * time.Millisecond, download: time.Minute}
	began := time.Now()
	_, err = f.fetch(t.Context())
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("took %v for a probe of 100 ms", took)
	}
	wantOneLine(t, err, ErrNotInstalled.Error())
}

func TestFetchKeepsWhatItFetched(t *testing.T) {
	var fetched int
	archive := jar(t)
	repository := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, ".sha256"):
			sum := sha256.Sum256(archive)
			w.Write([]byte(hex.EncodeToString(sum[:])))
		case strings.HasSuffix(r.URL.Path, ".jar"):
			fetched++
			w.Write(archive)
		}
	}))
	defer repository.Close()
	defer http.DefaultClient.CloseIdleConnections()
	f := fetcher{repository: repository.URL, cache: t.TempDir(), probe: 5 * time.Second, download: time.Minute}
	for range 2 {
		bin, err := f.fetch(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if bin.major != 18 || !strings.HasPrefix(bin.dir, f.cache) {
			t.Errorf("fetched %+v", bin)
		}
	}
	if fetched != 1 {
		t.Errorf("fetched %d times, want once", fetched)
	}
}

func TestFetchOfAMissingVersionIsOneLine(t *testing.T) {
	repository := httptest.NewServer(http.NotFoundHandler())
	defer repository.Close()
	defer http.DefaultClient.CloseIdleConnections()
	f := fetcher{repository: repository.URL, cache: t.TempDir(), probe: 5 * time.Second, download: time.Minute}
	_, err := f.fetch(t.Context())
	wantOneLine(t, err, ErrNotInstalled.Error(), "no version found")
}

func jar(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	w, err := z.Create("postgres-any.txz")
	if err == nil {
		_, err = w.Write(programs)
	}
	if err = errors.Join(err, z.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
