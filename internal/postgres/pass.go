package postgres

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"nudged/scheduler"
)

// How long a request is left alone that a view fails for, unless it is touched: nobody touches it where it is the view
// that is put right. Where a pass could read nothing else, it is likely to be that.
const (
	unreadableFor    = time.Hour
	allUnreadableFor = 5 * time.Minute
)

// carefully is how many requests of each kind a pass takes that looks for rows which a view fails for: few enough
// for its time where it fails for all of them.
const carefully = 100

// RunPass recovers, takes, plans and claims in one short transaction. Where a view fails for a row, it begins again
// with fewer requests and finds out for which.
func (s *Store) RunPass(ctx context.Context, p scheduler.Pass) (scheduler.PassResult, error) {
	result, err := s.runPass(ctx, p, false)
	if failsForARow(err) {
		p.Fresh, p.Due = min(p.Fresh, carefully), min(p.Due, carefully)
		result, err = s.runPass(ctx, p, true)
		result.Partial = true
	}
	if err != nil {
		return scheduler.PassResult{}, fmt.Errorf("run a pass: %w", ofAView(err))
	}
	return result, nil
}

// runPass is one try. careful: requests that a view fails for are looked for first, and left alone.
func (s *Store) runPass(ctx context.Context, p scheduler.Pass, careful bool) (scheduler.PassResult, error) {
	var result scheduler.PassResult
	var got taken
	var accounts []string // of the requests that were looked at
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		result = scheduler.PassResult{Skipped: map[scheduler.Reason]int{}}
		var err error
		if got, err = s.take(ctx, tx, p, &result); err != nil || len(got.ids) == 0 {
			return err
		}
		views := s.overViews.Load()
		w := newWrites(p, views)
		if careful {
			if result.Unreadable, err = unreadable(ctx, tx, p, got.ids, views, got.purged); err != nil {
				return err
			}
			wait := unreadableFor
			if len(result.Unreadable) == len(got.ids) {
				wait = allUnreadableFor
			}
			if err := w.leaveAlone(result.Unreadable, result.Now.Add(wait)); err != nil {
				return err
			}
		}
		err = eachInput(ctx, tx, readable(got.ids, result.Unreadable), views, got.purged, func(in scheduler.Input) error {
			if in.Request != nil {
				accounts = append(accounts, in.Request.AccountID)
			}
			return w.add(in, p.Plan(in))
		})
		if err != nil {
			return err
		}
		return w.send(ctx, tx, &result)
	})
	if err != nil {
		return scheduler.PassResult{}, err
	}
	s.restless.calm(got.woken, got.locked)
	s.restless.add(got.lost...)
	result.More = s.turns.over(p.Due, got.offered, result.Due, accounts)
	return result, nil
}

// writes gathers what the plans of one pass decided, column by column.
type writes struct {
	pass  scheduler.Pass
	views bool // the application's tables are views
	tasks map[scheduler.ClaimID]*scheduler.Task
	order []scheduler.ClaimID // claims in the order they were taken

	fresh struct { // new rows: claims and skips
		request, slot, state []string
		link, due            []time.Time
		reason               []pgtype.Text
		claim                []pgtype.UUID
	}
	retried struct { // deferred rows claimed again
		request, slot   []string
		link            []time.Time
		attempt         []int32
		claim, previous []pgtype.UUID
	}
	ended struct { // deferred rows that are over
		request, slot, state, reason []string
		link                         []time.Time
	}
	wakes struct {
		request          []string
		at               []pgtype.Timestamptz
		problem, account []pgtype.Text
		by               []pgtype.Int4 // fingerprint; NULL: closed, and never to wake
	}
	gone []string
}

func newWrites(p scheduler.Pass, views bool) *writes {
	return &writes{pass: p, views: views, tasks: map[scheduler.ClaimID]*scheduler.Task{}}
}

// leaveAlone plans nothing for some requests but when to look at them again.
func (w *writes) leaveAlone(requests []scheduler.Unreadable, until time.Time) error {
	for _, r := range requests {
		if err := w.add(scheduler.Input{RequestID: r.RequestID}, scheduler.Decision{Problem: scheduler.ProblemUnreadable, Wake: until}); err != nil {
			return err
		}
	}
	return nil
}

func (w *writes) add(in scheduler.Input, d scheduler.Decision) error {
	for _, v := range d.Verdicts {
		if v.Existing {
			e := &w.ended
			e.request, e.link, e.slot = append(e.request, in.RequestID), append(e.link, v.LinkCreatedAt), append(e.slot, v.Slot.Name)
			e.state, e.reason = append(e.state, string(v.State)), append(e.reason, string(v.Reason))
		} else {
			w.insert(in, v.LinkCreatedAt, v.Slot.Name, v.Slot.Due, v.State, v.Reason, scheduler.ClaimID{})
		}
	}
	if d.Claim != nil {
		if err := w.claim(in, d.Claim); err != nil {
			return err
		}
	}
	if in.Request == nil && in.Link == nil && d.Wake.IsZero() { // and nothing of it is in flight
		w.gone = append(w.gone, in.RequestID)
		return nil
	}
	w.wakes.request = append(w.wakes.request, in.RequestID)
	w.wakes.at = append(w.wakes.at, timestamp(d.Wake))
	w.wakes.problem = append(w.wakes.problem, text(string(d.Problem)))
	account, open := "", false
	if in.Request != nil {
		account, open = in.Request.AccountID, in.Request.Status.Open()
	}
	w.wakes.by = append(w.wakes.by, pgtype.Int4{Int32: w.pass.PlannedBy, Valid: open || !d.Wake.IsZero()})
	w.wakes.account = append(w.wakes.account, text(account))
	return nil
}

func (w *writes) insert(in scheduler.Input, link time.Time, slot string, due time.Time,
	state scheduler.State, reason scheduler.Reason, claim scheduler.ClaimID,
) {
	f := &w.fresh
	f.request, f.link, f.slot = append(f.request, in.RequestID), append(f.link, link), append(f.slot, slot)
	f.due, f.state = append(f.due, due), append(f.state, string(state))
	f.reason, f.claim = append(f.reason, text(string(reason))), append(f.claim, uuid(claim))
}

func (w *writes) claim(in scheduler.Input, c *scheduler.Claim) error {
	var id scheduler.ClaimID
	if _, err := rand.Read(id[:]); err != nil {
		return fmt.Errorf("draw a claim id: %w", err)
	}
	if c.Retry {
		r := &w.retried
		r.request, r.link, r.slot = append(r.request, in.RequestID), append(r.link, in.Link.CreatedAt), append(r.slot, c.Slot.Name)
		r.attempt = append(r.attempt, int32(c.Attempt)) //nolint:gosec // bounded by retry_for
		r.claim, r.previous = append(r.claim, uuid(id)), append(r.previous, uuid(c.Previous))
	} else {
		w.insert(in, in.Link.CreatedAt, c.Slot.Name, c.Slot.Due, scheduler.StateClaimed, "", id)
	}
	w.order = append(w.order, id)
	task := c.Task(in)
	task.ClaimID = id
	w.tasks[id] = &task
	return nil
}

// send writes everything in one round trip and fills in the result.
func (w *writes) send(ctx context.Context, tx pgx.Tx, result *scheduler.PassResult) error {
	won := make(map[scheduler.ClaimID]bool, len(w.order))
	batch := &pgx.Batch{}
	if f := &w.fresh; len(f.request) > 0 {
		batch.Queue(insertRowsSQL, f.request, f.link, f.slot, f.due, f.state, f.reason, f.claim, w.pass.Worker, w.pass.Lease).
			Query(func(rows pgx.Rows) error {
				var claim pgtype.UUID
				var reason pgtype.Text
				_, err := pgx.ForEachRow(rows, []any{&claim, &reason}, func() error {
					if claim.Valid {
						won[claim.Bytes] = true
					} else {
						result.Skipped[scheduler.Reason(reason.String)]++
					}
					return nil
				})
				return err
			})
	}
	if r := &w.retried; len(r.request) > 0 {
		batch.Queue(claimDeferredSQL, r.request, r.link, r.slot, r.attempt, r.claim, r.previous, w.pass.Worker, w.pass.Lease).
			Query(func(rows pgx.Rows) error {
				var claim pgtype.UUID
				_, err := pgx.ForEachRow(rows, []any{&claim}, func() error {
					won[claim.Bytes] = true
					return nil
				})
				return err
			})
	}
	if e := &w.ended; len(e.request) > 0 {
		batch.Queue(endDeferredSQL, e.request, e.link, e.slot, e.state, e.reason).Query(func(rows pgx.Rows) error {
			var state scheduler.State
			var reason scheduler.Reason
			_, err := pgx.ForEachRow(rows, []any{&state, &reason}, func() error {
				switch state {
				case scheduler.StateFailed:
					result.Failed++
				case scheduler.StateSkipped:
					result.Skipped[reason]++
				}
				return nil
			})
			return err
		})
	}
	batch.Queue(setWakesSQL, w.wakes.request, w.wakes.at, w.wakes.problem, w.wakes.account, w.wakes.by)
	if len(w.gone) > 0 {
		batch.Queue(forgetSQL, w.gone)
	}
	if len(w.order) > 0 {
		queueForApplication(ctx, batch, w.views, func() {
			batch.Queue(documentsSQL, w.claimed()).Query(w.takeDocuments)
		})
	}
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("write the plan: %w", err)
	}
	for _, id := range w.order {
		if won[id] {
			result.Tasks = append(result.Tasks, *w.tasks[id])
		} else {
			result.Lost++
		}
	}
	return nil
}

// claimed lists the requests that a slot is claimed for.
func (w *writes) claimed() []string {
	ids := make([]string, 0, len(w.order))
	for _, claim := range w.order {
		ids = append(ids, w.tasks[claim].Request.ID)
	}
	return ids
}

// takeDocuments gives each task the documents of its request.
func (w *writes) takeDocuments(rows pgx.Rows) error {
	found, err := pgx.CollectRows(rows, scanDocument)
	if err != nil {
		return err
	}
	byRequest := map[string][]scheduler.Document{}
	for _, d := range found {
		byRequest[d.requestID] = append(byRequest[d.requestID], d.Document)
	}
	for _, task := range w.tasks {
		task.Documents = byRequest[task.Request.ID]
	}
	return nil
}

var _ scheduler.Store = (*Store)(nil)
