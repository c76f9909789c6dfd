-- FAULTY on purpose (build tag fault_conflict): insert_rows.sql, but a row that is there already is
-- taken over.
INSERT INTO nudged.reminders AS m
    (request_id, link_created_at, slot, due_at, state, reason, attempt, claim_id, claimed_by, lease_until, finished_at)
SELECT i.request_id, i.link_created_at, i.slot, i.due_at, i.state, i.reason,
       CASE i.state WHEN 'claimed' THEN 1 ELSE 0 END,
       i.claim_id,
       CASE i.state WHEN 'claimed' THEN $8::text END,
       CASE i.state WHEN 'claimed' THEN now() + $9::interval END,
       CASE i.state WHEN 'claimed' THEN NULL ELSE now() END
FROM unnest($1::text[], $2::timestamptz[], $3::text[], $4::timestamptz[], $5::text[], $6::text[], $7::uuid[])
     AS i (request_id, link_created_at, slot, due_at, state, reason, claim_id)
ON CONFLICT (request_id, link_created_at, slot) DO UPDATE
SET state = EXCLUDED.state, reason = EXCLUDED.reason, attempt = EXCLUDED.attempt, claim_id = EXCLUDED.claim_id,
    claimed_by = EXCLUDED.claimed_by, lease_until = EXCLUDED.lease_until, finished_at = EXCLUDED.finished_at,
    retry_at = NULL, handed_off_at = NULL, unknown_since = NULL
RETURNING m.claim_id, m.reason;
