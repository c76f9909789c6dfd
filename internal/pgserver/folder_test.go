package pgserver

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFolderWithOtherThingsIsRefused(t *testing.T) {
	dir := folder(t)
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "thesis.txt"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	_, err := Start(t.Context(), Config{Dir: dir})
	wantOneLine(t, err, dir, "thesis.txt")
	info, err := os.Stat(dir)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o755 {
		t.Errorf("the mode of a refused folder became %v", info.Mode().Perm())
	}
}

func TestFolderThatTheAccountCannotReach(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root runs the server under another account")
	}
	dir := folder(t)
	closed := filepath.Dir(dir)
	if err := os.Chmod(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := Start(t.Context(), Config{Dir: dir})
	wantOneLine(t, err, closed, "choose a folder elsewhere")
}

func TestFolderOfAnotherAccount(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give a folder away")
	}
	dir := folder(t)
	if err := os.MkdirAll(filepath.Join(dir, "data"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(dir, 12345, 12345); err != nil {
		t.Fatal(err)
	}
	_, err := Start(t.Context(), Config{Dir: dir})
	wantOneLine(t, err, dir, "12345")
}

func TestFolderTooLongForASocket(t *testing.T) {
	dir := filepath.Join(folder(t), strings.Repeat("long", 25))
	_, err := Start(t.Context(), Config{Dir: dir})
	wantOneLine(t, err, "shorter")
}

func TestDataOfAnotherVersion(t *testing.T) {
	dir := folder(t)
	data := filepath.Join(dir, "data")
	if err := os.MkdirAll(data, 0o700); err != nil {
		t.Fatal(err)
	}
	if account, err := serverAccount(); err != nil {
		t.Fatal(err)
	} else if account != nil {
		if err := os.Chown(dir, int(account.uid), int(account.gid)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(data, "PG_VERSION"), []byte("9\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Start(t.Context(), Config{Dir: dir})
	wantOneLine(t, err, "PostgreSQL 9", EnvBin)
}
