package postgres

import (
	"slices"
	"strings"

	"golang.org/x/net/idna"
)

// spellings are what one address may be called in a row of the application: with the domain as it is given,
// in A-labels and in U-labels (RFC 5890), in lower case. What has no valid domain has one spelling.
func spellings(address string) []string {
	address = strings.Trim(address, " ") // as SQL does: another blank is part of the address
	all := []string{strings.ToLower(address)}
	at := strings.LastIndexByte(address, '@')
	for _, spelled := range []func(string) (string, error){idna.Lookup.ToASCII, idna.Lookup.ToUnicode} {
		if domain, err := spelled(address[at+1:]); err == nil {
			all = append(all, strings.ToLower(address[:at+1]+domain))
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
