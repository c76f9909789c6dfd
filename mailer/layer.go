package mailer

import (
	"bytes"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/language"
)

// piece is one file of templates. Its name is what mistakes are reported under.
type piece struct{ name, text string }

// layer are the files of one folder of templates, by their path with the language in lower case.
type layer struct {
	pieces  map[string]piece
	locales map[string]bool // languages that have a folder
}

// readLayer reads a folder. Links are followed, as Kubernetes mounts folders, and hidden entries
// left out. The error is that of the folder itself.
func readLayer(folder fs.FS, prefix string) (layer, TemplateProblems, error) {
	r := layerReader{folder: folder, prefix: prefix, layer: layer{pieces: map[string]piece{}, locales: map[string]bool{}}}
	entries, err := fs.ReadDir(folder, ".")
	if err != nil {
		return layer{}, nil, err
	}
	for _, entry := range entries {
		name := entry.Name()
		info, err := fs.Stat(folder, name)
		switch {
		case strings.HasPrefix(name, "."):
		case err != nil:
			r.problem(name, reason(err))
		case !info.IsDir():
			r.read("", "", name, fileSubject, fileText, fileHTML, fileTone)
		default:
			r.language(name)
		}
	}
	return r.layer, r.problems, nil
}

type layerReader struct {
	folder   fs.FS
	prefix   string
	layer    layer
	problems TemplateProblems
}

// language reads the folder of one language.
func (r *layerReader) language(name string) {
	locale := strings.ToLower(strings.ReplaceAll(name, "_", "-"))
	if _, err := language.Parse(locale); err != nil {
		r.problem(name, "not the tag of a language, such as fr or pt-br")
		return
	}
	entries, err := fs.ReadDir(r.folder, name)
	if err != nil {
		r.problem(name, reason(err))
		return
	}
	r.layer.locales[locale] = true
	for _, entry := range entries {
		if !strings.HasPrefix(entry.Name(), ".") {
			r.read(locale+"/", name+"/", entry.Name(), fileSubject, fileText, fileHTML, filePhrases)
		}
	}
}

// read keeps a file if it is one of those that belong into its folder, under the name that the
// folder should have. Files of another kind may lie beside them, but no other templates.
func (r *layerReader) read(locale, folder, file string, known ...string) {
	if !slices.Contains(known, file) {
		if strings.HasSuffix(file, ".txt") || strings.HasSuffix(file, ".html") {
			r.problem(folder+file, "not read, want one of "+strings.Join(known, ", "))
		}
		return
	}
	text, err := fs.ReadFile(r.folder, folder+file)
	if err != nil {
		r.problem(folder+file, reason(err))
		return
	}
	if line := lineOfNoText(text); line > 0 {
		r.problems = append(r.problems, TemplateProblem{File: r.prefix + folder + file, Line: line, Reason: "not text in UTF-8"})
		return
	}
	r.layer.pieces[locale+file] = piece{name: r.prefix + folder + file, text: strings.TrimPrefix(string(text), "\ufeff")}
}

// lineOfNoText is the first line with a byte that is no text in UTF-8, or with a NUL; 0: there is none.
func lineOfNoText(text []byte) int {
	number := 0
	for line := range bytes.Lines(text) {
		number++
		if !utf8.Valid(line) || bytes.IndexByte(line, 0) >= 0 {
			return number
		}
	}
	return 0
}

func (r *layerReader) problem(name, reason string) {
	r.problems = append(r.problems, TemplateProblem{File: r.prefix + name, Line: 1, Reason: reason})
}

// reason leaves the name of the file out of an error, because it is told beside it.
func reason(err error) string {
	if failure, ok := errors.AsType[*fs.PathError](err); ok {
		err = failure.Err
	}
	return "cannot be read: " + err.Error()
}
