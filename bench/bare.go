package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"nudged/scheduler"
)

// bare is the least a ledger can do: a row for each claim, marked before and after its delivery, and a
// wake that moves. It reads no request, checks nothing again before a mail leaves, keeps no reason and has
// no constraint but its keys, so that nobody could trust it. What the pipeline reaches with it is the most
// that it can reach with any ledger in PostgreSQL and the same window.
type bare struct {
	pool  *pgxpool.Pool
	tasks int // not yet claimed
	next  int
}

func openBare(ctx context.Context, d *database, n int) (*bare, error) {
	_, err := d.pool.Exec(ctx, `
		CREATE TABLE bare_reminders (request_id text, link_created_at timestamptz, slot text, claim_id uuid, state text,
			recipient text, message_id text, handed_off_at timestamptz, finished_at timestamptz,
			PRIMARY KEY (request_id, link_created_at, slot)) WITH (fillfactor = 50);
		CREATE TABLE bare_schedules (request_id text PRIMARY KEY, wake_at timestamptz) WITH (fillfactor = 70);
		CREATE INDEX ON bare_schedules (wake_at)`)
	if err != nil {
		return nil, err
	}
	if _, err = d.pool.Exec(ctx, `INSERT INTO bare_schedules SELECT 'r-' || i, now() FROM generate_series(0, $1::int) i`, n); err != nil {
		return nil, err
	}
	if _, err = d.pool.Exec(ctx, "VACUUM ANALYZE bare_schedules"); err != nil {
		return nil, err
	}
	config, err := pgxpool.ParseConfig(d.url)
	if err != nil {
		return nil, err
	}
	for _, off := range []string{"enable_seqscan", "enable_hashjoin", "enable_mergejoin"} {
		config.ConnConfig.RuntimeParams[off] = "off"
	}
	config.ConnConfig.RuntimeParams["plan_cache_mode"] = "force_generic_plan"
	pool, err := pgxpool.NewWithConfig(ctx, config)
	return &bare{pool: pool, tasks: n}, err
}

// RunPass implements scheduler.Store: it claims the next ones.
func (b *bare) RunPass(ctx context.Context, p scheduler.Pass) (scheduler.PassResult, error) {
	result := scheduler.PassResult{Now: time.Now(), Due: min(p.Due, b.tasks)}
	var keys bareKeys
	for range result.Due {
		t := task(b.next)
		if _, err := rand.Read(t.ClaimID[:]); err != nil {
			return result, err
		}
		keys.add(t.Request.ID, t.Link.CreatedAt, t.Slot.Name, t.ClaimID)
		result.Tasks = append(result.Tasks, t)
		b.next++
		b.tasks--
	}
	result.More = b.tasks > 0
	if result.Due == 0 {
		return result, nil
	}
	batch := &pgx.Batch{}
	batch.Queue(`INSERT INTO bare_reminders (request_id, link_created_at, slot, claim_id, state)
		SELECT i.r, i.l, i.s, i.c, 'claimed' FROM unnest($1::text[], $2::timestamptz[], $3::text[], $4::uuid[]) AS i (r, l, s, c)
		ON CONFLICT DO NOTHING`, keys.requests, keys.links, keys.slots, keys.claims)
	batch.Queue(`UPDATE bare_schedules s SET wake_at = now() + interval '7 days'
		FROM unnest($1::text[]) AS i (r) WHERE s.request_id = i.r`, keys.requests)
	return result, b.pool.SendBatch(ctx, batch).Close()
}

// Settle implements scheduler.Store.
func (b *bare) Settle(ctx context.Context, s scheduler.Batch) ([]scheduler.HandOffResult, error) {
	batch := &pgx.Batch{}
	if len(s.Settlements) > 0 {
		var keys bareKeys
		for _, o := range s.Settlements {
			keys.add(o.RequestID, o.LinkCreatedAt, o.Slot, o.ClaimID)
		}
		batch.Queue(`UPDATE bare_reminders m SET state = 'sent', finished_at = now()
			FROM unnest($1::text[], $2::timestamptz[], $3::text[], $4::uuid[]) AS i (r, l, s, c)
			WHERE m.request_id = i.r AND m.link_created_at = i.l AND m.slot = i.s AND m.claim_id = i.c`,
			keys.requests, keys.links, keys.slots, keys.claims)
	}
	results := make([]scheduler.HandOffResult, len(s.HandOffs))
	if len(s.HandOffs) > 0 {
		var keys bareKeys
		var recipients, messageIDs []string
		for i, h := range s.HandOffs {
			results[i].ClaimID = h.ClaimID
			keys.add(h.RequestID, h.LinkCreatedAt, h.Slot, h.ClaimID)
			recipients, messageIDs = append(recipients, h.Recipient), append(messageIDs, h.MessageID)
		}
		batch.Queue(`UPDATE bare_reminders m SET state = 'sending', recipient = i.t, message_id = i.m, handed_off_at = now()
			FROM unnest($1::text[], $2::timestamptz[], $3::text[], $4::uuid[], $5::text[], $6::text[]) AS i (r, l, s, c, t, m)
			WHERE m.request_id = i.r AND m.link_created_at = i.l AND m.slot = i.s AND m.claim_id = i.c`,
			keys.requests, keys.links, keys.slots, keys.claims, recipients, messageIDs)
	}
	if err := b.pool.SendBatch(ctx, batch).Close(); err != nil {
		return nil, fmt.Errorf("settle in the bare ledger: %w", err)
	}
	return results, nil
}

// Renew implements scheduler.Store: nobody else claims here.
func (b *bare) Renew(_ context.Context, claims []scheduler.ClaimID, _ time.Duration) ([]scheduler.ClaimID, error) {
	return claims, nil
}

// bareKeys are the key and the fence of some rows, column by column.
type bareKeys struct {
	requests, slots []string
	links           []time.Time
	claims          []pgtype.UUID
}

func (k *bareKeys) add(request string, link time.Time, slot string, claim scheduler.ClaimID) {
	k.requests, k.slots = append(k.requests, request), append(k.slots, slot)
	k.links = append(k.links, link)
	k.claims = append(k.claims, pgtype.UUID{Bytes: claim, Valid: true})
}
