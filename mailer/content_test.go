package mailer

import (
	"bufio"
	"bytes"
	"io"
	"net/textproto"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestContent(t *testing.T) {
	for in, want := range map[string]string{
		"":                       ".\r\n",
		"a\r\n":                  "a\r\n.\r\n",
		"a":                      "a\r\n.\r\n",
		"a\nb\n":                 "a\r\nb\r\n.\r\n",
		"a\r":                    "a\r\n.\r\n",
		".":                      "..\r\n.\r\n",
		".\r\nQUIT\r\n":          "..\r\nQUIT\r\n.\r\n",
		"a\n.\nQUIT\n":           "a\r\n..\r\nQUIT\r\n.\r\n",
		"..a\r\nb.\r\n.c":        "...a\r\nb.\r\n..c\r\n.\r\n",
		"\r\n\r\n":               "\r\n\r\n.\r\n",
		"a\r.\rb\r\n":            "a\r.\rb\r\n.\r\n",
		strings.Repeat(".\n", 3): "..\r\n..\r\n..\r\n.\r\n",
	} {
		if got := string(appendContent(nil, []byte(in))); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

// A reader that is not ours takes back what was written, whatever it is: the one dot alone on a line is the last.
func TestContentIsReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lines := rapid.SliceOf(rapid.StringOf(rapid.RuneFrom([]rune(".a \x00é")))).Draw(t, "lines")
		message := []byte(strings.Join(lines, rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(t, "end")))
		sent := appendContent([]byte("before"), message)[len("before"):]
		r := textproto.NewReader(bufio.NewReader(bytes.NewReader(append(sent, "QUIT\r\n"...))))
		got, err := io.ReadAll(r.DotReader())
		want := strings.Join(lines, "\n")
		if len(message) > 0 && !strings.HasSuffix(want, "\n") {
			want += "\n"
		}
		if err != nil || string(got) != want {
			t.Fatalf("%q was read as %q, %v", message, got, err)
		}
		if rest, err := r.ReadLine(); rest != "QUIT" || err != nil {
			t.Fatalf("behind it: %q, %v", rest, err)
		}
	})
}
