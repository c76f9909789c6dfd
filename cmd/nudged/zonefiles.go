package main

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	"time"
)

const (
	sampleZone   = "Europe/Paris" // whoever has zone data has this one
	zoneDepth    = 3              // America/Argentina/Ushuaia
	zoneFileMost = 10 << 20       // the time package reads no larger one
)

// zoneinfoEdition is the edition of what $ZONEINFO names: a folder or, by its name, a zip.
func zoneinfoEdition(zoneinfo string) (string, error) {
	if _, err := os.Stat(zoneinfo); err != nil { //nolint:gosec // whoever starts the program names it
		return "", errors.Unwrap(err) // the path is told beside it
	}
	if len(zoneinfo) <= len(".zip") || !strings.HasSuffix(zoneinfo, ".zip") {
		return zoneEdition(os.DirFS(zoneinfo))
	}
	archive, err := zip.OpenReader(zoneinfo)
	if err != nil {
		return "", err
	}
	defer archive.Close()
	if archive.Comment != "" {
		return "", errors.New("the archive has a comment, with which it cannot be read")
	}
	return zoneEdition(archive)
}

// zoneEdition identifies zone data by the version that tzdata packages leave beside the zones, if they do,
// and by their content, which distributions mend without another version.
func zoneEdition(zones fs.FS) (string, error) {
	data, err := readZone(zones, sampleZone)
	if err != nil {
		return "", err
	}
	if _, err := time.LoadLocationFromTZData(sampleZone, data); err != nil {
		return "", fmt.Errorf("load time zone %q: %w", sampleZone, err)
	}
	sum := sha256.New()
	sumZones(sum, zones, ".", zoneDepth)
	return strings.TrimSpace(fmt.Sprintf("%s %.6x", zoneVersion(zones), sum.Sum(nil))), nil
}

// sumZones adds the zones of a folder, names and content, and those of the folders in it. It follows links
// to folders, which a volume of Kubernetes consists of, and is bounded by the depth where they lead round.
// What cannot be read is passed over, as the time package does.
func sumZones(sum hash.Hash, zones fs.FS, dir string, depth int) {
	entries, err := fs.ReadDir(zones, dir)
	if err != nil {
		return
	}
	for _, entry := range entries { // in the order of their names
		name := path.Join(dir, entry.Name())
		if first := entry.Name()[0]; first < 'A' || first > 'Z' {
			continue // posix/…, right/… and tables: no zone that a request can have
		}
		if data, err := readZone(zones, name); err == nil && bytes.HasPrefix(data, []byte("TZif")) {
			fmt.Fprintf(sum, "%s %d\n%s", name, len(data), data)
		} else if depth > 1 {
			sumZones(sum, zones, name, depth-1)
		}
	}
}

// readZone reads one file, if the time package would.
func readZone(zones fs.FS, name string) ([]byte, error) {
	info, err := fs.Stat(zones, name)
	if err != nil {
		return nil, err
	}
	header, zipped := info.Sys().(*zip.FileHeader)
	switch {
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("read time zone %q: it is no regular file", name)
	case info.Size() > zoneFileMost:
		return nil, fmt.Errorf("read time zone %q: it is larger than %d bytes", name, zoneFileMost)
	case zipped && header.Method != zip.Store:
		return nil, fmt.Errorf("read time zone %q: it is compressed", name)
	}
	return fs.ReadFile(zones, name)
}

// zoneVersion is the version that tzdata packages leave beside the zones; empty where there is none.
func zoneVersion(zones fs.FS) string {
	source, err := zones.Open("tzdata.zi")
	if err != nil {
		return ""
	}
	defer source.Close()
	head := make([]byte, 64)
	n, _ := source.Read(head) // a short read has no version
	found := regexp.MustCompile(`^# version (\w[\w.-]*)\n`).FindSubmatch(head[:n])
	if found == nil {
		return ""
	}
	return string(found[1])
}
