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
)

// maxFile bounds every file that is read, in bytes: a device or a log named by mistake must not
// fill the memory.
const maxFile = 1 << 20

// readFile returns a small file. The error does not repeat the name, which stands next to it.
func readFile(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, unreadable(err)
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err != nil {
		return nil, unreadable(err)
	}
	if len(data) > maxFile {
		return nil, errors.New("file is larger than 1 MiB")
	}
	return data, nil
}

func unreadable(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = e.Err
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
	if _, err := databaseURL(secret.Reveal()); err != nil {
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
