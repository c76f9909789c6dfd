package postgres

import (
	"slices"
	"strings"

	"golang.org/x/net/idna"
)

// spellings are what one address may be called in a row of the application: with the domain as it is given,
// in A-labels and in U-labels (RFC 5890), in lower case. What has no valid domain has one spelling.
func spellings(address string) []string {
	address = strings.ToLower(strings.TrimSpace(address))
	all := []string{address}
	at := strings.LastIndexByte(address, '@')
	for _, spelled := range []func(string) (string, error){idna.Lookup.ToASCII, idna.Lookup.ToUnicode} {
		if domain, err := spelled(address[at+1:]); err == nil {
			all = append(all, address[:at+1]+domain)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
