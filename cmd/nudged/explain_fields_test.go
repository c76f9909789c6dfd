package main

import (
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"nudged/scheduler"
)

// fieldsOf lists the fields that JSON gives a type.
func fieldsOf(kind reflect.Type) []string {
	var names []string
	for field := range kind.Fields() {
		if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// firstColumn lists the words in the first column of the tables below a heading.
func firstColumn(text, heading string) []string {
	_, section, _ := strings.Cut(text, "\n## "+heading+"\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var words []string
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z_]+)`").FindAllStringSubmatch(section, -1) {
		words = append(words, m[1])
	}
	return words
}

// docs/explain.md tells of every field and every fate, and of nothing else.
func TestExplainIsDocumented(t *testing.T) {
	data, err := os.ReadFile("../../docs/explain.md")
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	for heading, kind := range map[string]reflect.Type{
		"An explanation": reflect.TypeFor[explanation](), "A slot": reflect.TypeFor[explainedSlot](), "A fact": reflect.TypeFor[explainedEvidence](),
		"The link": reflect.TypeFor[explainedLink](), "An event": reflect.TypeFor[explainedEvent](), "All requests of a recipient": reflect.TypeFor[recipientExplanation](),
	} {
		if diff := cmp.Diff(fieldsOf(kind), firstColumn(text, heading)); diff != "" {
			t.Errorf("%s (- in the code, + in the document)\n%s", heading, diff)
		}
	}
	fates := map[string]bool{}
	for _, fate := range scheduler.Fates() {
		fates[string(fate)] = true
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(fates)), slices.Sorted(slices.Values(firstColumn(text, "Fates")))); diff != "" {
		t.Errorf("fates (- in the code, + in the document)\n%s", diff)
	}
}
