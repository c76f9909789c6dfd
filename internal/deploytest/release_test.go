package deploytest

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// host is the platform that a dry run builds for.
const host = runtime.GOOS + "-" + runtime.GOARCH

// releases needs what the script needs.
func releases(t *testing.T) {
	t.Helper()
	for _, name := range []string{"git", "tar", "gzip", "sha256sum"} {
		needProgram(t, name)
	}
}

// source copies the repository, without its history.
func source(t *testing.T) string {
	t.Helper()
	return copyTree(t, func(name string) bool { return name == ".git" || name == "dist" || name == "bin" })
}

// script returns the release script of a tree, to be run with some arguments.
func script(tree string, arguments ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(tree, "deploy/release/release.sh"), arguments...)
	cmd.Env = foreign()
	return cmd
}

// Two trees in two places, under two sets of habits, give the same bytes.
func TestReleaseCanBeRepeated(t *testing.T) {
	releases(t)
	first, second := t.TempDir(), t.TempDir()
	succeed(t, script(source(t), "--dry-run", "--out", first))
	other := source(t)
	habits := exec.Command("sh", "-c", `umask 077; exec "$0" "$@"`, filepath.Join(other, "deploy/release/release.sh"), "--dry-run", "--out", second)
	habits.Dir = "/"
	habits.Env = append(foreign(), "TZ=Asia/Tokyo", "GOAMD64=v3", "GOFLAGS=", "SOURCE_DATE_EPOCH=1", "USER=other")
	succeed(t, habits)

	name := "nudged-0.0.0-dry-run-" + host
	want := []string{"SHA256SUMS", name + ".cdx.json", name + ".tar.gz"}
	if diff := cmp.Diff(want, list(t, first)); diff != "" {
		t.Fatalf("files (-want +got)\n%s", diff)
	}
	for _, file := range want {
		if read(t, filepath.Join(first, file)) != read(t, filepath.Join(second, file)) {
			t.Errorf("%s differs between two builds", file)
		}
	}
	checkSums(t, first)

	content := unpack(t, filepath.Join(first, name+".tar.gz"))
	program := content[name+"/nudged"]
	for _, file := range []string{"LICENSE", "README.md", "CHANGELOG.md", "LICENSES-of-modules.txt", "systemd/nudged.service", "systemd/nudged.yml", "systemd/nudged.env"} {
		if _, ok := content[name+"/"+file]; !ok {
			t.Errorf("the archive lacks %s", file)
		}
	}
	checkBill(t, filepath.Join(first, name+".cdx.json"), "0.0.0-dry-run", program)
	checkLicences(t, string(content[name+"/LICENSES-of-modules.txt"]), program)

	image := filepath.Join(t.TempDir(), "nudged")
	compile(t, "0.0.0-dry-run", "unknown", image)
	if read(t, image) != string(program) {
		t.Error("image and archive hold different programs")
	}
}

func TestReleaseOfATag(t *testing.T) {
	releases(t)
	tree := source(t)
	git := func(arguments ...string) string {
		cmd := exec.Command("git", append([]string{"-c", "user.name=Releaser", "-c", "user.email=r@example.com", "-c", "commit.gpgsign=false", "-C", tree}, arguments...)...)
		return strings.TrimSpace(succeed(t, cmd))
	}
	refused := func(why string) {
		t.Helper()
		if r := finish(t, script(tree, "--out", t.TempDir(), runtime.GOOS+"/"+runtime.GOARCH)); r.state.ExitCode() != 1 || !strings.Contains(r.stderr, why) {
			t.Errorf("%s, %q, want a refusal: %s", r.state, r.stderr, why)
		}
	}
	git("init", "--quiet")
	git("add", "--all")
	git("commit", "--quiet", "--message=All")
	refused("HEAD carries no tag")
	git("tag", "v1.2.3")
	write(t, filepath.Join(tree, "README.md"), "changed\n")
	refused("the tree is not clean")
	git("checkout", "--quiet", "README.md")

	out := t.TempDir()
	succeed(t, script(tree, "--out", out, runtime.GOOS+"/"+runtime.GOARCH))
	program := unpack(t, filepath.Join(out, "nudged-1.2.3-"+host+".tar.gz"))["nudged-1.2.3-"+host+"/nudged"]
	file := filepath.Join(t.TempDir(), "nudged")
	if err := os.WriteFile(file, program, 0o755); err != nil {
		t.Fatal(err)
	}
	if got, want := succeed(t, exec.Command(file, "version")), "nudged 1.2.3 (revision "+git("rev-parse", "HEAD")+", go"; !strings.HasPrefix(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func list(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

// checkSums compares SHA256SUMS with every other file of a release.
func checkSums(t *testing.T, dir string) {
	t.Helper()
	var want strings.Builder
	names := list(t, dir)
	slices.Reverse(names) // archives come before their bills
	for _, name := range names {
		if name != "SHA256SUMS" {
			want.WriteString(sum([]byte(read(t, filepath.Join(dir, name)))) + "  " + name + "\n")
		}
	}
	if diff := cmp.Diff(want.String(), read(t, filepath.Join(dir, "SHA256SUMS"))); diff != "" {
		t.Errorf("SHA256SUMS (-want +got)\n%s", diff)
	}
}

func sum(content []byte) string {
	digest := sha256.Sum256(content)
	return hex.EncodeToString(digest[:])
}

// unpack returns the files of an archive by name. It knows nobody and no time but the release's.
func unpack(t *testing.T, archive string) map[string][]byte {
	t.Helper()
	packed, err := gzip.NewReader(strings.NewReader(read(t, archive)))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for r := tar.NewReader(packed); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if header.Uid != 0 || header.Gid != 0 || header.Uname != "" {
			t.Errorf("%s belongs to %d:%d %q", header.Name, header.Uid, header.Gid, header.Uname)
		}
		if executable := header.Mode&0o111 != 0; executable != (header.Typeflag == tar.TypeDir || path.Base(header.Name) == "nudged") || header.Mode&0o444 != 0o444 {
			t.Errorf("%s has mode %o", header.Name, header.Mode)
		}
		if header.Typeflag == tar.TypeDir {
			continue
		}
		if files[header.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
}

// modules returns what the linker says that is in a program, as module@version.
func modules(t *testing.T, program []byte) (names []string) {
	t.Helper()
	info, err := buildinfo.Read(bytes.NewReader(program))
	if err != nil {
		t.Fatal(err)
	}
	for _, module := range info.Deps {
		names = append(names, module.Path+"@"+module.Version)
	}
	if len(names) < 10 {
		t.Fatalf("%d modules", len(names))
	}
	return names
}

func checkBill(t *testing.T, file, version string, program []byte) {
	t.Helper()
	type component struct {
		Type, Name, Version, PURL string
		Hashes                    []struct{ Alg, Content string }
	}
	var bill struct {
		BOMFormat, SpecVersion string
		Metadata               struct {
			Timestamp string
			Component component
		}
		Components []component
	}
	if err := json.Unmarshal([]byte(read(t, file)), &bill); err != nil {
		t.Fatal(err)
	}
	about := bill.Metadata.Component
	if bill.BOMFormat != "CycloneDX" || bill.SpecVersion != "1.6" || bill.Metadata.Timestamp != "1970-01-01T00:00:00Z" ||
		about.Name != "nudged" || about.Version != version || len(about.Hashes) != 1 || about.Hashes[0].Content != sum(program) {
		t.Errorf("the bill is about something else: %+v", bill)
	}
	want := append([]string{"std@" + strings.TrimPrefix(runtime.Version(), "go")}, modules(t, program)...)
	var got []string
	for _, c := range bill.Components {
		got = append(got, c.Name+"@"+c.Version)
		if wantURL := "pkg:golang/" + strings.ReplaceAll(strings.ToLower(c.Name)+"@"+c.Version, "+", "%2B"); c.PURL != wantURL || c.Type != "library" {
			t.Errorf("component %+v, want %s", c, wantURL)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("modules (-in the program +in the bill)\n%s", diff)
	}
}

// checkLicences looks for the licence of every module that is in the program.
func checkLicences(t *testing.T, text string, program []byte) {
	t.Helper()
	for _, module := range modules(t, program) {
		if !strings.Contains(text, "==== "+strings.Replace(module, "@", " ", 1)+": ") {
			t.Errorf("no licence of %s", module)
		}
	}
}
