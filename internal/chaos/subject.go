//go:build chaos

package chaos

import (
	"fmt"
	"time"
)

// state is what the application says about one request and its link.
type state struct {
	status      string
	address     string
	pausedUntil time.Time // zero: not paused
	optedOut    bool
	linkCreated time.Time
	url         string
	expires     time.Time // zero: never
	revoked     bool
}

func (s state) open() bool { return s.status == "pending" || s.status == "pending_resubmission" }

// version is a state and when it came to hold, by the database's clock: no snapshot before begin
// can see it, every one after end must.
type version struct {
	state

	cause      string
	begin, end time.Time
}

// subject is one request of the application, owned by one of its clients.
type subject struct {
	id       string
	cadence  string
	versions []version
	urls     map[string]time.Time // of each link it ever had: when it was created
	edits    int                  // of the address
}

func (s *subject) now() state { return s.versions[len(s.versions)-1].state }

// visible returns the versions that a snapshot taken between from and to can have seen.
func (s *subject) visible(from, to time.Time) []version {
	var seen []version
	for i, v := range s.versions {
		if v.begin.After(to) {
			break
		}
		if i+1 < len(s.versions) && s.versions[i+1].end.Before(from) {
			continue
		}
		seen = append(seen, v)
	}
	return seen
}

// newLink gives a state a link of its own, counted from an instant that is a second or more away from
// that of every other link: closer, it would be the same one.
func (s *subject) newLink(to *state, created time.Time) {
	for taken := true; taken; {
		created = created.Truncate(time.Microsecond)
		taken = false
		for _, other := range s.urls {
			if other.Sub(created).Abs() < time.Second {
				taken, created = true, other.Add(-time.Second)
			}
		}
	}
	to.url = fmt.Sprintf("https://%s/u/%s/%d", markLink, s.id, len(s.urls))
	to.linkCreated, to.expires, to.revoked = created, time.Time{}, false
	s.urls[to.url] = created
}

// newAddress gives a state an address that no other request and no other edit has.
func (s *subject) newAddress(to *state) {
	to.address = fmt.Sprintf("%s.%d@%s", s.id, s.edits, markAddress)
	s.edits++
}

// closedAt says why nothing may be handed off in this version, at the instant h, for this link and
// recipient; "" where it may.
func (v version) closedAt(h, link time.Time, recipient string) string {
	switch {
	case !v.open():
		return "request_closed"
	case v.revoked:
		return "link_revoked"
	case !v.linkCreated.Equal(link):
		return "link_replaced"
	case !v.expires.IsZero() && !h.Before(v.expires):
		return "link_expired"
	case v.optedOut:
		return "opted_out"
	case h.Before(v.pausedUntil):
		return "paused"
	case v.address != recipient:
		return "recipient_changed"
	default:
		return ""
	}
}

// justifies reports whether this version is a reason to skip a slot at the instant now.
func (v version) justifies(reason string, now, link, due time.Time) bool {
	switch reason {
	case "request_closed":
		return !v.open()
	case "link_revoked":
		return v.revoked
	case "link_replaced":
		return !v.linkCreated.Equal(link)
	case "link_expired":
		return !v.expires.IsZero() && !now.Before(v.expires)
	case "opted_out":
		return v.optedOut
	case "paused":
		return now.Before(v.pausedUntil) || due.Before(v.pausedUntil)
	default: // those that the application has no part in
		return true
	}
}
