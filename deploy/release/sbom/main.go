// Command sbom prints what a binary is made of, as CycloneDX 1.6 in JSON. It reads what the linker
// wrote into the binary: the modules that are in it, and no others.
//
//	sbom --version=1.2.3 --epoch=1767225600 nudged >nudged.cdx.json
//
// It imports no package of this module. The same arguments and the same binary give the same bytes.
package main

import (
	"cmp"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"
)

func main() {
	version := flag.String("version", "unknown", "version of the binary")
	epoch := flag.Int64("epoch", 0, "time of the release, in seconds since 1970")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "sbom: name one binary")
		os.Exit(2)
	}
	if err := write(os.Stdout, flag.Arg(0), *version, time.Unix(*epoch, 0)); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

// bill is a CycloneDX document.
//
//nolint:tagliatelle // the names are those of the standard
type bill struct {
	Format     string      `json:"bomFormat"`
	Spec       string      `json:"specVersion"`
	Version    int         `json:"version"`
	Metadata   metadata    `json:"metadata"`
	Components []component `json:"components"`
}

type metadata struct {
	Timestamp string    `json:"timestamp"`
	Component component `json:"component"`
}

//nolint:tagliatelle // the names are those of the standard
type component struct {
	Type       string     `json:"type"`
	Ref        string     `json:"bom-ref"`
	Name       string     `json:"name"`
	Version    string     `json:"version"`
	URL        string     `json:"purl"`
	Hashes     []hash     `json:"hashes,omitempty"`
	Properties []property `json:"properties,omitempty"`
}

type hash struct {
	Algorithm string `json:"alg"`
	Content   string `json:"content"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

func write(w io.Writer, file, version string, at time.Time) error {
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	info, err := buildinfo.ReadFile(file)
	if err != nil {
		return fmt.Errorf("read the build information of %s: %w", file, err)
	}
	sum := sha256.Sum256(content)
	name := filepath.Base(file)
	program := newComponent("application", "generic", name, version)
	program.Hashes = []hash{{Algorithm: "SHA-256", Content: hex.EncodeToString(sum[:])}}
	for _, setting := range info.Settings {
		if setting.Key == "GOOS" || setting.Key == "GOARCH" {
			program.Properties = append(program.Properties, property{Name: "nudged:" + setting.Key, Value: setting.Value})
		}
	}
	all := bill{
		Format: "CycloneDX", Spec: "1.6", Version: 1,
		Metadata:   metadata{Timestamp: at.UTC().Format(time.RFC3339), Component: program},
		Components: []component{newComponent("library", "golang", "std", strings.TrimPrefix(info.GoVersion, "go"))},
	}
	for _, module := range info.Deps {
		all.Components = append(all.Components, library(module))
	}
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(all)
}

// library is a module, or what go.mod replaces it with. Its sum is that of go.sum: a hash over the
// hashes of its files, which CycloneDX has no name for.
func library(module *debug.Module) component {
	module = cmp.Or(module.Replace, module)
	c := newComponent("library", "golang", module.Path, module.Version)
	if module.Sum != "" {
		c.Properties = []property{{Name: "nudged:go.sum", Value: module.Sum}}
	}
	return c
}

func newComponent(kind, ecosystem, name, version string) component {
	// The package URL specification asks for lower case and for %2B in place of +.
	url := "pkg:" + ecosystem + "/" + strings.ToLower(name) + "@" + strings.ReplaceAll(version, "+", "%2B")
	return component{Type: kind, Ref: url, Name: name, Version: version, URL: url}
}
