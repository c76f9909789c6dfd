package mailer

import (
	"bytes"
	"mime"
	"net/mail"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	gomail "github.com/wneessen/go-mail"
	"pgregory.net/rapid"
)

// TestMessageIsThatOfGoMail holds the bytes against those of the library, which is the slower way to the
// same mail: whatever stands in the header and in the parts.
func TestMessageIsThatOfGoMail(t *testing.T) {
	names := rapid.SliceOfNDistinct(rapid.StringMatching(`X-[A-Za-z-]{1,60}`), 0, 8, rapid.ID)
	values := rapid.OneOf(rapid.String(), rapid.StringMatching(`[a-z<>@:/é ]{0,300}`), rapid.StringMatching(`([a-z]{1,90} {1,3}){0,9}`), rapid.StringMatching(`([a-z]{1,9} {1,2}){40,60}`))
	rapid.Check(t, func(t *rapid.T) {
		const boundary = "0123456789abcdef"
		body := content{text: rapid.SliceOf(rapid.Byte()).Draw(t, "text"), html: []byte(rapid.String().Draw(t, "html"))}
		from := mail.Address{Name: values.Draw(t, "from"), Address: "from@example.com"}
		to := mail.Address{Name: values.Draw(t, "to"), Address: "to@example.net"}

		msg := gomail.NewMsg(gomail.WithNoDefaultUserAgent(), gomail.WithBoundary(boundary))
		fields := []field{{"MIME-Version", "1.0"}, {"Date", "d"}, {"Message-ID", "m"}}
		for _, name := range names.Draw(t, "names") {
			fields = append(fields, field{name, values.Draw(t, name)})
		}
		for _, f := range fields {
			msg.SetGenHeader(gomail.Header(f.name), f.value)
		}
		msg.SetAddrHeaderFromMailAddress(gomail.HeaderFrom, &from)
		msg.SetAddrHeaderFromMailAddress(gomail.HeaderTo, &to)
		msg.SetBodyWriter(gomail.TypeTextPlain, bytes.NewReader(body.text).WriteTo)
		msg.AddAlternativeWriter(gomail.TypeTextHTML, bytes.NewReader(body.html).WriteTo)
		var want bytes.Buffer
		if _, err := msg.WriteTo(&want); err != nil {
			t.Fatal(err)
		}

		var got bounded
		addresses := []field{{"From", from.String()}, {"To", to.String()}}
		if err := writeMessage(&got, fields, addresses, boundary, body); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want.String(), got.String()); diff != "" {
			t.Fatalf("not what go-mail writes (-want +got):\n%s", diff)
		}
	})
}

// The longest names that a header takes fit in its lines, whatever they are made of (RFC 5322 section 2.1.1).
func TestLongestNames(t *testing.T) {
	for _, character := range []string{`"`, `\\`, "a", "é", "\u8a9e", "a ", "\u200b", "=?"} {
		name := headerText(strings.Repeat(character, 1000))
		for _, value := range []string{
			(&mail.Address{Name: name, Address: strings.Repeat("a", maxLocalPart) + "@example.net"}).String(),
			mime.QEncoding.Encode("UTF-8", name),
		} {
			for line := range strings.SplitSeq(string(appendField(nil, "Reply-To", value)), "\r\n") {
				if len(line) > 998 {
					t.Errorf("%q repeated makes a line of %d bytes", character, len(line))
				}
			}
		}
	}
}
