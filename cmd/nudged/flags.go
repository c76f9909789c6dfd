package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"
)

// filled is the text of a flag that is left away or says something: an empty one is a variable of a
// script that was never set, and must not mean the default.
type filled string

// Decode implements kong.MapperValue.
func (f *filled) Decode(ctx *kong.DecodeContext) error {
	token, err := ctx.Scan.PopValue("text")
	if err != nil {
		return err
	}
	*f = filled(token.String())
	if strings.TrimSpace(string(*f)) == "" {
		return fmt.Errorf("must not be empty (got %q): leave the flag away, or give it a value", string(*f))
	}
	return nil
}

// maxCount bounds what one command prints.
const maxCount = 10_000

// count says how many things to print, 1 to maxCount; 0 where the flag is left away.
type count int

// Decode implements kong.MapperValue. It takes a negative number for one, and not for a flag.
func (c *count) Decode(ctx *kong.DecodeContext) error {
	token := ctx.Scan.Pop()
	n, err := strconv.Atoi(token.String())
	if err != nil || n < 1 || n > maxCount {
		return fmt.Errorf("want a whole number from 1 to %d (got %q)", maxCount, token.String())
	}
	*c = count(n)
	return nil
}
