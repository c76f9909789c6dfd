package main

import (
	"encoding/json"
	"io"
)

func printJSON(w io.Writer, v any) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false) // nobody puts it into a page
	return encoder.Encode(v)
}
