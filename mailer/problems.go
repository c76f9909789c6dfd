package mailer

import (
	"cmp"
	"errors"
	"fmt"
	htmltemplate "html/template"
	"regexp"
	"slices"
	"strconv"
	"strings"
	texttemplate "text/template"
	"text/template/parse"
)

// TemplateProblem is one thing that is wrong with a file of templates.
type TemplateProblem struct {
	File   string // path in the folder of templates, or "built-in " and the path among those
	Line   int    // from 1
	Reason string
}

func (p TemplateProblem) String() string { return fmt.Sprintf("%s:%d: %s", p.File, p.Line, p.Reason) }

// TemplateProblems is the error of templates that cannot be used. It is never empty.
type TemplateProblems []TemplateProblem

// Error returns one line for each problem.
func (ps TemplateProblems) Error() string {
	list := make([]string, len(ps))
	for i, p := range ps {
		list[i] = p.String()
	}
	return strings.Join(list, "\n")
}

// sorted returns each problem once, in the order of files and lines.
func (ps TemplateProblems) sorted() TemplateProblems {
	slices.SortFunc(ps, func(a, b TemplateProblem) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Reason, b.Reason))
	})
	return slices.Compact(ps)
}

// place finds file and line in the errors of the template packages, which have no other way to tell.
var place = regexp.MustCompile(`(?s)^(?:html/)?template: ?(.+?):(\d+)(?::\d+)?: (.*)$`)

// problemOf turns an error of a template package around.
func problemOf(err error) TemplateProblem {
	m := place.FindStringSubmatch(err.Error())
	if unsafe, ok := errors.AsType[*htmltemplate.Error](err); ok && m == nil && unsafe.ErrorCode == htmltemplate.ErrEndContext {
		// What it says beside that is the state of its parser.
		return TemplateProblem{File: unsafe.Name, Line: 1, Reason: "ends inside a tag, an attribute or a script: is a quotation mark or a > missing?"}
	}
	if m == nil {
		return TemplateProblem{File: "templates", Line: 1, Reason: oneLine(err.Error())}
	}
	line, _ := strconv.Atoi(m[2]) // digits
	return TemplateProblem{File: m[1], Line: max(line, 1), Reason: oneLine(m[3])}
}

// trees are the templates that one may refer to.
type trees func(name string) *parse.Tree

func textTrees(t *texttemplate.Template) trees {
	return func(name string) *parse.Tree {
		if found := t.Lookup(name); found != nil {
			return found.Tree
		}
		return nil
	}
}

func htmlTrees(t *htmltemplate.Template) trees {
	return func(name string) *parse.Tree {
		if found := t.Lookup(name); found != nil {
			return found.Tree
		}
		return nil
	}
}

// dangling finds the templates that are referred to, from a first one on, and are not there. One
// that only a built-in file refers to is a phrase that the language lacks.
func dangling(locale, first string, defined trees) TemplateProblems {
	var problems TemplateProblems
	seen := map[string]bool{}
	var visit func(tree *parse.Tree, node parse.Node)
	enter := func(name string) bool {
		tree := defined(name)
		if tree != nil && !seen[name] {
			seen[name] = true
			visit(tree, tree.Root)
		}
		return tree != nil
	}
	visit = func(tree *parse.Tree, node parse.Node) {
		for _, list := range branches(node) {
			if list == nil {
				continue
			}
			for _, child := range list.Nodes {
				visit(tree, child)
			}
		}
		reference, ok := node.(*parse.TemplateNode)
		if !ok || enter(reference.Name) {
			return
		}
		if strings.HasPrefix(tree.ParseName, "built-in ") {
			problems = append(problems, TemplateProblem{locale + "/" + filePhrases, 1, fmt.Sprintf("the phrase %q is missing", reference.Name)})
			return
		}
		at, _ := tree.ErrorContext(reference)
		problems = append(problems, problemOf(fmt.Errorf("template: %s: there is no template %q", at, reference.Name)))
	}
	enter(first)
	return problems
}

// branches are the lists of nodes inside a node.
func branches(node parse.Node) []*parse.ListNode {
	switch n := node.(type) {
	case *parse.ListNode:
		return []*parse.ListNode{n}
	case *parse.IfNode:
		return []*parse.ListNode{n.List, n.ElseList}
	case *parse.RangeNode:
		return []*parse.ListNode{n.List, n.ElseList}
	case *parse.WithNode:
		return []*parse.ListNode{n.List, n.ElseList}
	}
	return nil
}
