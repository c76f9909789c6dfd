package devbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"

	"nudged/internal/pgserver"
)

// Config says where the box lies and whom it tells.
type Config struct {
	// Dir is the folder that keeps everything; empty: one in the user's cache folder, or for root
	// in the system's.
	Dir string
	// Out gets one line for every mail that arrives.
	Out io.Writer
	// Logger gets the inbox's own troubles.
	Logger *slog.Logger
	// DatabasePort and SMTPPort are ports on 127.0.0.1; 0 takes a free one.
	DatabasePort, SMTPPort int
}

// Box is a running PostgreSQL server and inbox.
type Box struct {
	dir    string
	log    *os.File // what PostgreSQL logs
	server *pgserver.Server
	inbox  *inbox
}

// Start starts the database and the inbox. The context bounds the start only. Where another
// process has the folder the error is a *pgserver.InUseError. What the environment says about other servers is
// forgotten.
func Start(ctx context.Context, config Config) (_ *Box, err error) {
	if err := pgserver.ForgetEnvironment(); err != nil {
		return nil, err
	}
	dir, err := folder(config.Dir)
	if err != nil {
		return nil, err
	}
	b := &Box{dir: dir}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.Stop(context.WithoutCancel(ctx)))
		}
	}()
	if b.log, err = os.OpenFile(filepath.Join(dir, "postgres.log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600); err != nil {
		return nil, fmt.Errorf("open the database's log: %w", err)
	}
	b.server, err = pgserver.Start(ctx, pgserver.Config{
		Dir:     filepath.Join(dir, "postgres"),
		Port:    config.DatabasePort,
		Durable: true,
		Log:     b.log,
	})
	if err != nil {
		return nil, fmt.Errorf("start the dev database: %w", err)
	}
	b.inbox, err = startInbox(inboxConfig{
		dir:    b.InboxDir(),
		port:   config.SMTPPort,
		onMail: printer(config.Out),
		logger: config.Logger,
	})
	if err != nil {
		return nil, fmt.Errorf("start the inbox: %w", err)
	}
	return b, nil
}

func folder(dir string) (string, error) {
	if dir == "" {
		cache, err := pgserver.CacheDir()
		if err != nil {
			return "", err
		}
		dir = filepath.Join(cache, "dev")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("find the dev folder: %w", err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("make the dev folder: %w", err)
	}
	return dir, nil
}

// Dir is the folder that keeps everything, as an absolute path.
func (b *Box) Dir() string { return b.dir }

// DatabaseURL is the URL of the database, for its superuser.
func (b *Box) DatabaseURL() string { return b.server.ConnString("postgres") }

// SMTPAddr is where the inbox listens: without TLS and without authentication.
func (b *Box) SMTPAddr() (host string, port int) { return loopback, b.inbox.port }

// InboxDir is the folder of the mails: one .eml file each, named so that they sort by arrival.
func (b *Box) InboxDir() string { return filepath.Join(b.dir, "inbox") }

// Stop closes the inbox and stops the database; what the context bounds is the latter. It may be
// called once.
func (b *Box) Stop(ctx context.Context) error {
	var failed []error
	if b.inbox != nil {
		failed = append(failed, b.inbox.close())
	}
	if b.server != nil {
		failed = append(failed, b.server.Stop(ctx))
	}
	if b.log != nil {
		failed = append(failed, b.log.Close())
	}
	return errors.Join(failed...)
}
