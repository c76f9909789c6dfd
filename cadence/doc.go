// Package cadence says which reminders a link gets and when each is due. It is arithmetic:
// an anchor, a zone and a rule go in, slots come out. It reads no clock, does no I/O, keeps
// no state but a cache of loaded zones, and imports no other package of this module.
//
// # Language
//
// A [Definition] has offsets (after, then_every) or a cron expression, and beside either a
// first mail and slots counted from the deadline:
//
//   - after: offsets from the anchor, in definition order. s, m, h are elapsed time and are
//     neither moved to a clock time nor rolled; d and w are calendar days; bd are business
//     days, the first of which is the first one after the anchor's date. Nothing is counted
//     from the slot in front.
//   - then_every: a distance of the kind of the last offset, repeated behind it for ever.
//   - at: the local clock time of d, w, bd and deadline slots; the anchor's own without it.
//   - days, holidays: the days that are allowed. d, w and deadline slots that fall on another
//     roll forward to the next allowed one; bd counts allowed days only. bd takes Monday to
//     Friday where days is absent.
//   - before_deadline: days before the deadline of the request; -1d is the day after it, 0d
//     the day itself. They are ordered by day, whatever order they are written in.
//   - first_mail: slot 0d, due at the anchor.
//   - cron: five fields, the grammar of robfig/cron less what that parser takes unseen, and
//     not both day fields restricted. Civil times that match, from the anchor on. A holiday's
//     times are left out, not rolled. at and days go with it only where they have deadline
//     slots to act on.
//   - max is carried for the scheduler: it bounds mails, not slots.
//
// # Names
//
// A slot is named by its nominal place: 0d, 3d (weeks in days), 36h (elapsed time in the
// largest of h, m, s that divides it), 5bd, deadline-2d, deadline-0d, deadline+1d, and for
// cron the nominal local time 2026-05-04T09:00. A name does not change with zone, at, days
// or the rest of the cadence.
//
// # Invariants
//
//  1. Slots rise strictly in due. Every slot is due after the anchor, 0d at it.
//  2. In definition order a slot exists only if it is due after every one in front of it,
//     whether those exist or not: of slots that fall together the first stands. Deadline
//     slots follow that rule among themselves and are then merged; one that falls on the
//     instant of another slot does not exist.
//  3. A civil time becomes the first instant at which the clock of the zone reads it or
//     later. One that occurs twice is the first; one that is skipped is the change that
//     skips it. There is one rule for all zones, and it is monotone.
//  4. Zone offsets are only ever read at an instant. time.Date in a zone, AddDate on a zoned
//     time, ZoneBounds and the Next of a cron library are not used: each picks another side
//     of a gap in another zone, loses days, or does not end.
//  5. Next and Last are total and cost a bounded number of zone look-ups, however far the
//     instant lies from the anchor. No slot is due after the year 9999.
//  6. Instants are whole seconds, fractions dropped; due is in UTC.
package cadence
