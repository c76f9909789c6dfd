package config

import (
	"fmt"
	"hash"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// place is where something stands in a file.
type place struct {
	file string
	line int
}

// places remembers where every key of a file stands.
type places struct {
	file string
	of   map[string]place // by path of the key
}

// find returns where a key stands; where it is absent, where its nearest section does.
func (p places) find(path string) place {
	for {
		if at, ok := p.of[path]; ok {
			return at
		}
		cut := strings.LastIndexAny(path, ".[")
		if cut < 0 {
			return place{p.file, 1}
		}
		path = path[:cut]
	}
}

// reader walks one configuration file and collects its mistakes.
type reader struct {
	places
	dir      string // what relative file names start from
	mistakes Mistakes
	sum      hash.Hash // over every file that was read, secrets excepted

	withoutRelay bool
	checks       Checks
}

func (r *reader) add(at place, path, reason, got string) {
	r.mistakes = append(r.mistakes, Mistake{File: at.file, Line: at.line, Key: path, Reason: reason, Got: got})
}

// mistake notes that the value of a key is wrong, at the place of the key.
func (r *reader) mistake(path, reason, text string) {
	r.add(r.find(path), path, reason, show(path, text))
}

// wrong reports whether a mistake about a key, or about something inside it, is known.
func (r *reader) wrong(path string) bool { return r.mistakes.about(path) }

// section is one mapping of the file. Decoders ask it for keys; finish reports those that nobody
// asked for.
type section struct {
	*reader
	path   string
	names  []string // in the order of the file
	values map[string]ast.Node
	known  []string
}

// section returns the mapping in a node; an absent or empty node is an empty section.
func (r *reader) section(path string, node ast.Node) *section {
	s := &section{reader: r, path: path, values: map[string]ast.Node{}}
	switch n := node.(type) {
	case nil, *ast.NullNode:
	case *ast.MappingNode:
		for _, entry := range n.Values {
			s.put(entry)
		}
	default:
		r.add(place{r.file, lineOf(node)}, path, "want a section with keys", kind(node))
	}
	return s
}

func (s *section) put(entry *ast.MappingValueNode) {
	at := place{s.file, lineOf(entry.Key)}
	name, ok := scalarText(entry.Key)
	if !ok {
		s.add(at, s.path, "want plain keys: no anchor, alias, tag or merge key", kind(entry.Key))
		return
	}
	path := join(s.path, name)
	if _, ok := s.values[name]; ok {
		s.add(at, join(s.path, leading(name)), fmt.Sprintf("given twice, first on line %d", s.of[path].line), "")
		return
	}
	s.names = append(s.names, name)
	s.values[name] = entry.Value
	s.of[path] = at
}

// take returns the value of a key, if it is there, and notes that the key exists.
func (s *section) take(key string) (path string, node ast.Node, ok bool) {
	s.known = append(s.known, key)
	node, ok = s.values[key]
	return join(s.path, key), node, ok
}

// sub returns the section under a key.
func (s *section) sub(key string) *section {
	path, node, _ := s.take(key)
	return s.section(path, node)
}

// finish reports the keys that no decoder asked for. Their values are not repeated: behind a misspelt key of
// a secret stands the secret.
func (s *section) finish() {
	for _, name := range s.names {
		if !slices.Contains(s.known, name) {
			reason := "unknown key, want one of " + strings.Join(s.known, ", ")
			s.add(s.of[join(s.path, name)], join(s.path, leading(name)), reason, "")
		}
	}
}

// scalar decodes the single value of a key into dst, which keeps what it has where the key is
// absent. The error of parse is the reason that a user reads.
func scalar[T any](s *section, key string, dst *T, parse func(string) (T, error)) {
	path, node, ok := s.take(key)
	if !ok {
		return
	}
	text, ok := s.text(path, node)
	if !ok {
		return
	}
	value, err := parse(text)
	if err != nil {
		s.mistake(path, err.Error(), text)
		return
	}
	*dst = value
}

// texts decodes a list of single values: a YAML list, or one line with commas between them.
func texts(s *section, key string, dst *[]string) {
	path, node, ok := s.take(key)
	if !ok {
		return
	}
	if text, ok := scalarText(node); ok {
		*dst = strings.Split(text, ",")
		for i, item := range *dst {
			(*dst)[i] = strings.TrimSpace(item)
		}
		return
	}
	list, ok := node.(*ast.SequenceNode)
	if !ok {
		s.add(s.find(path), path, "want a list", kind(node))
		return
	}
	*dst = []string{}
	for i, item := range list.Values {
		itemPath := indexed(path, i)
		s.of[itemPath] = place{s.file, lineOf(item)}
		text, _ := s.text(itemPath, item) // a wrong one keeps its place: the others are named by number
		*dst = append(*dst, text)
	}
}

// text returns a single value, or notes that there is something else.
func (r *reader) text(path string, node ast.Node) (string, bool) {
	text, ok := scalarText(node)
	if !ok {
		r.add(r.find(path), path, "want a single value", kind(node))
	}
	return text, ok
}

// plainKey matches the keys that need no quotes in a path.
var plainKey = regexp.MustCompile(`^[\pL\pN_-]+$`)

// leading returns a key as far as it looks like one: behind that, as in "password hunter2" without its colon,
// may stand what nobody is to read.
func leading(key string) string {
	cut := strings.IndexFunc(key, func(r rune) bool { return !plainKey.MatchString(string(r)) })
	if cut < 0 {
		return key
	}
	return key[:cut] + "…"
}

func join(path, key string) string {
	if !plainKey.MatchString(key) {
		return path + "[" + quote(key) + "]"
	}
	if path == "" {
		return key
	}
	return path + "." + key
}

func indexed(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }
