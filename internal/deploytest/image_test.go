package deploytest

import (
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
)

const dockerfilePath = root + "/deploy/container/Dockerfile"

// What the test's image is stamped with.
const (
	imageVersion  = "1.2.3"
	imageRevision = "0123456789abcdef0123456789abcdef01234567"
)

// instruction is one of a Dockerfile, without its comments and line ends.
type instruction struct{ word, rest string }

func dockerfile(t *testing.T) (list []instruction) {
	t.Helper()
	pending := ""
	for line := range strings.Lines(read(t, dockerfilePath)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if part, more := strings.CutSuffix(line, `\`); more {
			pending += part + " "
			continue
		}
		word, rest, _ := strings.Cut(pending+line, " ")
		list = append(list, instruction{word, strings.TrimSpace(rest)})
		pending = ""
	}
	return list
}

// finalStage returns the instructions behind the last FROM, and that FROM.
func finalStage(t *testing.T) (from string, list []instruction) {
	t.Helper()
	for _, i := range dockerfile(t) {
		if i.word == "FROM" {
			from, list = i.rest, nil
			continue
		}
		list = append(list, i)
	}
	return from, list
}

// one returns what follows the only instruction of a name.
func one(t *testing.T, list []instruction, word string) string {
	t.Helper()
	found := ""
	for _, i := range list {
		if i.word == word && found != "" {
			t.Fatalf("%s stands twice", word)
		}
		if i.word == word {
			found = i.rest
		}
	}
	if found == "" {
		t.Fatalf("no %s", word)
	}
	return found
}

// copied returns the sources of what the image holds, by their place in it.
func copied(t *testing.T) map[string]string {
	t.Helper()
	_, list := finalStage(t)
	files := map[string]string{}
	for _, i := range list {
		if i.word != "COPY" && i.word != "ADD" {
			continue
		}
		words := strings.Fields(i.rest)
		if i.word != "COPY" || len(words) != 3 || words[0] != "--from=build" {
			t.Fatalf("%s %s: these tests know COPY --from=build SOURCE TARGET", i.word, i.rest)
		}
		files[words[2]] = words[1]
	}
	return files
}

// compile runs the very command that the Dockerfile compiles with, over what reaches the builder.
func compile(t *testing.T, version, revision, target string) {
	t.Helper()
	for _, i := range dockerfile(t) {
		if i.word != "RUN" || !strings.Contains(i.rest, " go build ") {
			continue
		}
		command, output, found := strings.Cut(i.rest, "-o /out/nudged ")
		if !found {
			t.Fatalf("RUN %s: no -o /out/nudged", i.rest)
		}
		cmd := exec.Command("sh", "-c", command+`-o "$TARGET" `+output)
		cmd.Dir = buildContext(t)
		cmd.Env = append(os.Environ(), "VERSION="+version, "REVISION="+revision, "TARGETOS=", "TARGETARCH=", "TARGET="+target)
		succeed(t, cmd)
		return
	}
	t.Fatal("the Dockerfile compiles nothing")
}

// buildContext copies what the Dockerfile's .dockerignore lets through.
func buildContext(t *testing.T) string {
	t.Helper()
	var ignored []string
	for line := range strings.Lines(read(t, dockerfilePath+".dockerignore")) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			ignored = append(ignored, line)
		}
	}
	return copyTree(t, func(name string) bool {
		for _, pattern := range ignored {
			subject := name
			if rest, deep := strings.CutPrefix(pattern, "**/"); deep {
				pattern, subject = rest, path.Base(name)
			}
			if matched, err := path.Match(pattern, subject); err != nil || matched {
				return true
			}
		}
		return false
	})
}

// copyTree copies the repository to another place, without what is left out.
func copyTree(t *testing.T, leaveOut func(name string) bool) string {
	t.Helper()
	target := t.TempDir()
	err := filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || file == root {
			return err
		}
		name, err := filepath.Rel(root, file)
		switch {
		case err != nil:
			return err
		case leaveOut(name) && entry.IsDir():
			return fs.SkipDir
		case leaveOut(name):
			return nil
		case entry.IsDir():
			return os.Mkdir(filepath.Join(target, name), 0o755)
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(target, name), text, info.Mode().Perm())
	})
	if err != nil {
		t.Fatal(err)
	}
	return target
}

// program is the image's, compiled once for all tests.
var program struct {
	once sync.Once
	bits []byte
}

func imageProgram(t *testing.T) []byte {
	t.Helper()
	program.once.Do(func() {
		file := filepath.Join(t.TempDir(), "nudged")
		compile(t, imageVersion, imageRevision, file)
		program.bits = []byte(read(t, file))
	})
	if program.bits == nil {
		t.Fatal("the image's program was not compiled")
	}
	return program.bits
}

// image is the root of a container: nothing but what the Dockerfile copies.
type image struct {
	t    *testing.T
	root string
}

func newImage(t *testing.T) *image {
	t.Helper()
	need(t, os.Geteuid() == 0, "root, to change the root,")
	im := &image{t: t, root: t.TempDir()}
	for target, source := range copied(t) {
		place := filepath.Join(im.root, target)
		if source == "/out/nudged" {
			write(t, place, string(imageProgram(t)))
			if err := os.Chmod(place, 0o755); err != nil {
				t.Fatal(err)
			}
			continue
		}
		// The builder's image has the file of Debian's package.
		_, err := os.Stat(source)
		need(t, err == nil, source+" (package ca-certificates)")
		write(t, place, read(t, source))
	}
	return im
}

// command is what a container of the image would run, its CMD where no arguments are given.
func (im *image) command(arguments ...string) *exec.Cmd {
	im.t.Helper()
	_, list := finalStage(im.t)
	words := texts(im.t, one(im.t, list, "ENTRYPOINT"))
	if len(arguments) == 0 {
		arguments = texts(im.t, one(im.t, list, "CMD"))
	}
	uid, gid, _ := strings.Cut(one(im.t, list, "USER"), ":")
	cmd := exec.Command(words[0], append(words[1:], arguments...)...)
	cmd.Dir = "/"
	cmd.Env = []string{"PATH=/usr/local/bin", one(im.t, list, "ENV")}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Chroot:     im.root,
		Credential: &syscall.Credential{Uid: number(im.t, uid), Gid: number(im.t, gid)},
	}
	return cmd
}

func texts(t *testing.T, list string) (words []string) {
	t.Helper()
	if err := json.Unmarshal([]byte(list), &words); err != nil || len(words) == 0 {
		t.Fatalf("%s: want a JSON list, nothing starts a shell here (%v)", list, err)
	}
	return words
}

func number(t *testing.T, text string) uint32 {
	t.Helper()
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		t.Fatalf("USER: %v", err)
	}
	return uint32(n)
}
