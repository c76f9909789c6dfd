package config

import (
	"bytes"
	"crypto/x509"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// maxFile bounds every file that is read, in bytes: a device or a log named by mistake must not
// fill the memory.
const maxFile = 1 << 20

var errTooLarge = errors.New("file is larger than 1 MiB")

// openFile opens a file that can be read to its end: a regular one, links followed. To open anything
// else can wait for ever (a pipe without a writer), and so can reading it. The error is a
// *fs.PathError, of which the error inside says what is wrong.
func openFile(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	refuse := func(err error) (*os.File, error) {
		file.Close()
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	info, err := file.Stat()
	switch {
	case err != nil:
		return refuse(err)
	case info.IsDir():
		return refuse(syscall.EISDIR)
	case !info.Mode().IsRegular():
		return refuse(errors.New("not a regular file"))
	case info.Size() > maxFile:
		return refuse(errTooLarge)
	}
	return file, nil
}

// readFile returns a small file, without the byte order mark that some editors write in front. The
// error does not repeat the name, which stands next to it.
func readFile(path string) ([]byte, error) {
	file, err := openFile(path)
	if err != nil {
		return nil, unreadable(err)
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxFile+1)) // it may grow, and those of /proc have no size
	if err != nil {
		return nil, unreadable(err)
	}
	if len(data) > maxFile {
		return nil, errTooLarge
	}
	return bytes.TrimPrefix(data, []byte("\ufeff")), nil
}

// CheckFile reports whether a file that something else reads is a regular one of at most 1 MiB. The
// error does not repeat the name.
func CheckFile(path string) error {
	_, err := readFile(path)
	return err
}

// Folder returns the files of a folder. One that is not a regular file, or larger than 1 MiB, cannot
// be opened; links are followed.
func Folder(path string) fs.FS { return folder{os.DirFS(path), path} }

type folder struct {
	fs.FS

	path string
}

// Stat implements fs.StatFS: what cannot be opened may lie there.
func (f folder) Stat(name string) (fs.FileInfo, error) { return fs.Stat(f.FS, name) }

// Open implements fs.FS.
func (f folder) Open(name string) (fs.File, error) {
	if info, err := f.Stat(name); err != nil || info.IsDir() {
		return f.FS.Open(name)
	}
	return openFile(filepath.Join(f.path, name))
}

func unreadable(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = e.Err
	}
	if errors.Is(err, errTooLarge) {
		return err
	}
	return errors.New("file cannot be read: " + err.Error())
}

// resolve returns the path of a file that the configuration names.
func (r *reader) resolve(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(r.dir, name)
}

// secretFile reads a secret: the file without the line end behind it.
func (r *reader) secretFile(name string) (Secret, error) {
	data, err := readFile(r.resolve(name))
	if err != nil {
		return Secret{}, err
	}
	text := strings.TrimRight(string(data), "\r\n")
	if text == "" {
		return Secret{}, errors.New("file is empty")
	}
	return NewSecret(text), nil
}

// unread takes the name of a file and leaves the file alone.
func unread(string) (Secret, error) { return Secret{}, nil }

func (r *reader) databaseURLFile(name string) (Secret, error) {
	secret, err := r.secretFile(name)
	if err != nil {
		return Secret{}, err
	}
	if _, err := r.databaseURL(secret.Reveal()); err != nil {
		return Secret{}, errors.New("in the file: " + err.Error())
	}
	return secret, nil
}

// certificates reads a bundle of certificates to trust instead of those of the system.
func (r *reader) certificates(name string) (*x509.CertPool, error) {
	data, err := readFile(r.resolve(name))
	if err != nil {
		return nil, err
	}
	r.sum.Write(data)
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(data) {
		return nil, errors.New("file holds no PEM certificate")
	}
	return pool, nil
}

// folder returns the path of a folder that must exist.
func (r *reader) folder(name string) (string, error) {
	path := r.resolve(name)
	info, err := os.Stat(path)
	if err != nil {
		return "", unreadable(err)
	}
	if !info.IsDir() {
		return "", errors.New("want a folder")
	}
	return path, nil
}

// dateFile reads a file of one date a line, with # for remarks, and returns the dates and where
// each stands.
func (r *reader) dateFile(name string) (dates []string, places []place, err error) {
	path := r.resolve(name)
	data, err := readFile(path)
	if err != nil {
		return nil, nil, err
	}
	r.sum.Write(data)
	for i, line := range bytes.Split(data, []byte("\n")) {
		before, _, _ := bytes.Cut(line, []byte("#"))
		if date := strings.TrimSpace(string(before)); date != "" {
			dates = append(dates, date)
			places = append(places, place{path, i + 1})
		}
	}
	return dates, places, nil
}
