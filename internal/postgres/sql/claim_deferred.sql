-- Claims deferred reminders, and unknown ones that an idempotency key makes safe to repeat, for their
-- next attempt. The previous claim id is the fence: whoever
-- changed the row since has another one.
UPDATE nudged.reminders m
SET state = 'claimed', reason = NULL, attempt = c.attempt, claim_id = c.claim_id, claimed_by = $7::text,
    lease_until = now() + $8::interval, retry_at = NULL, handed_off_at = NULL, finished_at = NULL, smtp_code = NULL, smtp_reply = NULL
FROM unnest($1::text[], $2::timestamptz[], $3::text[], $4::integer[], $5::uuid[], $6::uuid[])
     AS c (request_id, link_created_at, slot, attempt, claim_id, previous)
WHERE m.request_id = c.request_id AND m.link_created_at = c.link_created_at AND m.slot = c.slot
  AND m.state IN ('deferred', 'unknown') AND m.claim_id = c.previous
RETURNING m.claim_id;
