package config

import (
	"bytes"
	"errors"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// root parses the file to its one mapping: nil where it is empty or a mistake was found.
func (r *reader) root(data []byte) ast.Node {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if !utf8.Valid(data) {
		r.add(place{r.file, invalidLine(data)}, "", "not valid UTF-8", "")
		return nil
	}
	file, err := parser.ParseBytes(data, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		r.syntax(err)
		return nil
	}
	var found ast.Node
	for _, doc := range file.Docs {
		switch body := doc.Body.(type) {
		case nil, *ast.DirectiveNode, *ast.NullNode:
		default:
			if found != nil {
				r.add(place{r.file, lineOf(body)}, "", "a second YAML document: want one", "")
				continue
			}
			found = body
		}
	}
	return found
}

// quoted matches what the YAML parser repeats of the file: it may be a password that began with a | or a >.
var quoted = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)

// syntax turns an error of the YAML parser, which carries a picture of the source, into one line.
func (r *reader) syntax(err error) {
	at, reason := 1, err.Error()
	if e, ok := errors.AsType[yaml.Error](err); ok {
		reason = strings.ReplaceAll(e.GetMessage(), "'\t'", "<tab>")
		if token := e.GetToken(); token != nil && token.Position != nil {
			at = token.Position.Line
		}
	}
	r.add(place{r.file, at}, "", "not valid YAML: "+quoted.ReplaceAllString(reason, `"…"`), "")
}

// invalidLine returns the line of the first byte that is not UTF-8.
func invalidLine(data []byte) int {
	at := 1
	for len(data) > 0 {
		char, size := utf8.DecodeRune(data)
		switch {
		case char == utf8.RuneError && size == 1:
			return at
		case char == '\n':
			at++
		}
		data = data[size:]
	}
	return at
}

// lineOf returns the line a node starts on. A mapping has no token of its own: its first key stands
// for it.
func lineOf(node ast.Node) int {
	if n, ok := node.(*ast.MappingNode); ok && len(n.Values) > 0 && !n.IsFlowStyle {
		return lineOf(n.Values[0].Key)
	}
	if token := node.GetToken(); token != nil && token.Position != nil {
		return token.Position.Line
	}
	return 1
}

// kind returns words for what a node is.
func kind(node ast.Node) string {
	if _, ok := scalarText(node); ok {
		return "a single value"
	}
	switch node.(type) {
	case *ast.MappingNode:
		return "a section"
	case *ast.SequenceNode:
		return "a list"
	case *ast.AnchorNode:
		return "an anchor"
	case *ast.AliasNode:
		return "an alias"
	case *ast.TagNode:
		return "a tag"
	case *ast.MergeKeyNode:
		return "a merge key"
	default:
		return "something else"
	}
}

// scalarText returns a single value as it is written in the file, without its quotes. What type
// it should have is the business of the key, not of the notation: a zone named 0300 stays 0300.
func scalarText(node ast.Node) (string, bool) {
	switch n := node.(type) {
	case *ast.StringNode:
		return n.Value, true
	case *ast.LiteralNode:
		return n.Value.Value, true
	case *ast.NullNode:
		return "", true
	case *ast.BoolNode, *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		return node.GetToken().Value, true
	default:
		return "", false
	}
}
