package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"nudged/scheduler"
)

// print writes an explanation for people to read.
func (e explanation) print(w io.Writer) error {
	fmt.Fprintln(w, plain(e.Answer))
	for _, warning := range e.Warnings {
		fmt.Fprintln(w, "Attention:", plain(warning))
	}
	fmt.Fprintln(w)
	if err := e.printRequest(w); err != nil {
		return err
	}
	for _, s := range e.Slots {
		if err := e.printSlot(w, s); err != nil {
			return err
		}
	}
	for _, r := range e.unsettled {
		sent, notSent := command{program: "nudged"}.resolve(r)
		fmt.Fprintf(w, "\nLook for <%s> in the mail server's log. If it is there:\n\n%s\n\nIf it is not, this lets it go out again if it still may:\n\n%s\n",
			r.MessageID, indented(sent), indented(notSent))
	}
	if err := e.printEvents(w); err != nil {
		return err
	}
	return e.printNext(w)
}

func indented(text string) string { return "  " + strings.ReplaceAll(text, "\n", "\n  ") }

// printRequest writes what is looked at, and by which configuration.
func (e explanation) printRequest(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	request := []string{e.RequestID}
	for _, fact := range []struct{ what, value string }{{"", e.Status}, {"for ", e.Recipient}, {"cadence ", e.Cadence}} {
		if fact.value != "" {
			request = append(request, fact.what+fact.value)
		}
	}
	fmt.Fprintf(table, "Request:\t%s\n", plain(strings.Join(request, ", ")))
	if e.Language != "" {
		locale := "the locale " + e.Locale
		if e.Locale == "" {
			locale = "requests without a locale"
		}
		fmt.Fprintf(table, "Language:\t%s, for %s\n", e.Language, plain(locale))
	}
	if l := e.Link; l != nil {
		link := "created " + e.instant(l.CreatedAt.Time)
		if l.ExpiresAt.IsZero() || l.ExpiresAt.Equal(scheduler.Forever()) {
			link += "; never expires"
		} else {
			link += "; expires " + e.instant(l.ExpiresAt.Time)
		}
		if !l.RevokedAt.IsZero() {
			link += "; withdrawn " + e.instant(l.RevokedAt.Time)
		}
		fmt.Fprintf(table, "Link:\t%s\n", link)
	}
	fmt.Fprintf(table, "Time zone:\t%s\n", plain(e.Zone))
	fmt.Fprintf(table, "Rules:\t%s\n", cmp.Or(e.Configuration, "built-in configuration"))
	return table.Flush()
}

// instant writes an instant in the zone of the request, and in UTC where that differs.
func (e explanation) instant(t time.Time) string {
	if _, offset := t.In(e.zone).Zone(); offset == 0 || t.Equal(scheduler.Forever()) || t.Equal(scheduler.BeforeAll()) {
		return scheduler.Local(t, e.zone)
	}
	return scheduler.Local(t, e.zone) + " (" + t.UTC().Format(time.DateTime) + " UTC)"
}

func (e explanation) printSlot(w io.Writer, s explainedSlot) error {
	fmt.Fprintf(w, "\nSlot %s %s\n", s.Slot, plain(s.told))
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	if s.EarlierLink {
		fmt.Fprintf(table, "  link\t%s\tan earlier one was created\n", e.instant(s.LinkCreatedAt.Time))
	}
	fmt.Fprintf(table, "  due\t%s\t%s\n", e.instant(s.Due.Time), plain(s.Rule))
	for _, fact := range s.Evidence {
		at, words := "", fact.What
		if !fact.At.IsZero() {
			at = e.instant(fact.At.Time)
		}
		if fact.Who != "" {
			words = fact.Who + " " + words
		}
		fmt.Fprintf(table, "  \t%s\t%s\n", at, plain(words))
	}
	return table.Flush()
}

func (e explanation) printEvents(w io.Writer) error {
	if len(e.Events) == 0 {
		return nil
	}
	fmt.Fprintln(w, "\nWhat people did")
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, event := range e.Events {
		fmt.Fprintf(table, "  %s\t%s\t%s\t%s\n", e.instant(event.At.Time), plain(event.Actor),
			plain(strings.Join(strings.Fields(event.Action+" "+event.Slot+" "+event.Address+" "+event.Detail), " ")), plain(event.Why))
	}
	return table.Flush()
}

func (e explanation) printNext(w io.Writer) error {
	if len(e.Next) > 0 {
		fmt.Fprintln(w, "\nWhat comes next")
		table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		for _, s := range e.Next {
			fmt.Fprintf(table, "  %s\t%s", s.Slot, e.instant(s.Due.Time))
			for _, fact := range s.Evidence {
				fmt.Fprintf(table, "\t%s  %s", e.instant(fact.At.Time), plain(fact.What))
			}
			fmt.Fprintln(table)
		}
		if err := table.Flush(); err != nil {
			return err
		}
	}
	if len(e.Stops) > 0 {
		fmt.Fprintln(w, "\nWhat would stop it")
		for _, stop := range e.Stops {
			fmt.Fprintln(w, "  "+plain(stop))
		}
	}
	return nil
}

// sent is one mail, or what may have been one.
type sentMail struct {
	request explanation
	slot    explainedSlot
}

// mails are those that went to the address, or may have, the newest first.
func (r recipientExplanation) mails() []sentMail {
	var mails []sentMail
	for _, e := range r.Requests {
		for _, s := range e.Slots {
			if s.State.Mailed() && scheduler.SameAddress(s.Recipient, r.Recipient) {
				mails = append(mails, sentMail{e, s})
			}
		}
	}
	slices.SortStableFunc(mails, func(a, b sentMail) int { return b.slot.HandedOffAt.Compare(a.slot.HandedOffAt.Time) })
	return mails
}

// sentence answers for the address as a whole.
func (r recipientExplanation) sentence() string {
	mails := r.mails()
	doubt := 0
	for _, m := range mails {
		if m.slot.Fate == scheduler.FateUnknown {
			doubt++
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s, %s", r.Recipient, counted(r.Found, "request"), counted(len(mails)-doubt, "mail"))
	if doubt > 0 {
		fmt.Fprintf(&b, " and %d of unknown fate", doubt)
	}
	if len(mails) > 0 {
		fmt.Fprintf(&b, ", the last %s", mails[0].request.instant(mails[0].slot.HandedOffAt.Time))
	}
	if next, ok := r.next(); ok {
		fmt.Fprintf(&b, "; slot %s of request %s comes next, due %s", next.slot.Slot, next.request.RequestID, next.request.instant(next.slot.Due.Time))
	} else {
		b.WriteString("; nothing comes next")
	}
	if r.Found > len(r.Requests) {
		fmt.Fprintf(&b, "; these are the %d requests with the newest links", len(r.Requests))
	}
	return b.String() + "."
}

// next is the first slot to come of all requests that have the address now.
func (r recipientExplanation) next() (first sentMail, ok bool) {
	for _, e := range r.Requests {
		for _, s := range slices.Concat(e.Slots, e.Next) {
			never := s.State.Mailed() || s.Fate == scheduler.FateWaits && s.Reason != "" // it has left, or waits in vain
			coming := !never && slices.Contains([]scheduler.Fate{
				scheduler.FateDue, scheduler.FateWaits, scheduler.FateRetry, scheduler.FateInFlight, scheduler.FateToCome,
			}, s.Fate)
			if coming && scheduler.SameAddress(e.Recipient, r.Recipient) && (!ok || s.Due.Before(first.slot.Due.Time)) {
				first, ok = sentMail{e, s}, true
			}
		}
	}
	return first, ok
}

func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// print writes all requests of a recipient for people to read.
func (r recipientExplanation) print(w io.Writer) error {
	fmt.Fprintln(w, plain(r.Answer))
	for _, warning := range r.Warnings {
		fmt.Fprintln(w, "Attention:", plain(warning))
	}
	if mails := r.mails(); len(mails) > 0 {
		fmt.Fprintln(w, "\nMails to it, the newest first")
		table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		for _, m := range mails {
			fmt.Fprintf(table, "  %s\trequest %s\tslot %s\t%s\n", m.request.instant(m.slot.HandedOffAt.Time), plain(m.request.RequestID), m.slot.Slot, m.slot.Fate.Words())
		}
		if err := table.Flush(); err != nil {
			return err
		}
	}
	for _, e := range r.Requests {
		fmt.Fprintf(w, "\n%s\n", strings.Repeat("-", 80))
		if err := e.print(w); err != nil {
			return err
		}
	}
	return nil
}
