package postgres

import (
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"nudged/cadence"
	"nudged/scheduler"
)

// instant turns a nullable timestamptz into the domain's: NULL is the zero time, infinity is
// scheduler.Forever, -infinity scheduler.BeforeAll.
func instant(t pgtype.Timestamptz) time.Time {
	switch {
	case !t.Valid:
		return time.Time{}
	case t.InfinityModifier == pgtype.Infinity:
		return scheduler.Forever()
	case t.InfinityModifier == pgtype.NegativeInfinity:
		return scheduler.BeforeAll()
	default:
		return t.Time.UTC()
	}
}

// timestamp is the way back: the zero time is NULL.
func timestamp(t time.Time) pgtype.Timestamptz {
	return pgtype.Timestamptz{Time: t, Valid: !t.IsZero()}
}

// text is NULL for the empty string.
func text(s string) pgtype.Text { return pgtype.Text{String: s, Valid: s != ""} }

// integer is NULL for zero.
func integer(n int) pgtype.Int4 { return pgtype.Int4{Int32: int32(n), Valid: n != 0} } //nolint:gosec // an SMTP code

func date(d pgtype.Date) cadence.Date {
	if !d.Valid || d.InfinityModifier != pgtype.Finite {
		return cadence.Date{}
	}
	return cadence.DateOf(d.Time)
}
