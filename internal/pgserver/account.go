package pgserver

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// account is the unprivileged user that the server runs as.
type account struct {
	name     string
	uid, gid uint32
}

// serverAccount is nil unless this process is root: then the server runs as who we are.
func serverAccount() (*account, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, errUID := strconv.ParseUint(u.Uid, 10, 32)
		gid, errGID := strconv.ParseUint(u.Gid, 10, 32)
		if err := errors.Join(errUID, errGID); err != nil {
			return nil, fmt.Errorf("read the ids of user %s: %w", name, err)
		}
		return &account{name: name, uid: uint32(uid), gid: uint32(gid)}, nil
	}
	return nil, errors.New("PostgreSQL does not run as root, and there is neither a user postgres nor nobody: start nudged as an ordinary user")
}

// reaches reports the folder on the way to dir, itself included, that the account cannot pass.
func (a *account) reaches(dir string) error {
	for {
		info, err := os.Stat(dir)
		if err != nil {
			return fmt.Errorf("look at folder: %w", err)
		}
		if !a.passes(info) {
			return fmt.Errorf("folder %s is closed to user %s, who runs the PostgreSQL server for root: choose a folder elsewhere", dir, a.name)
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return nil
		}
		dir = parent
	}
}

func (a *account) passes(folder os.FileInfo) bool {
	owner := folder.Sys().(*syscall.Stat_t)
	switch {
	case owner.Uid == a.uid:
		return folder.Mode()&0o100 != 0
	case owner.Gid == a.gid:
		return folder.Mode()&0o010 != 0
	default:
		return folder.Mode()&0o001 != 0
	}
}

// CacheDir is the folder for what nudged can make again. Root's is one that the account which
// runs the server can reach.
func CacheDir() (string, error) {
	if os.Geteuid() == 0 {
		return "/var/cache/nudged", nil
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the cache folder: %w", err)
	}
	return filepath.Join(dir, "nudged"), nil
}
