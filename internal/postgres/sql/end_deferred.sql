-- Ends deferred reminders without another attempt: skipped, or failed for want of time.
UPDATE nudged.reminders m
SET state = e.state, reason = e.reason, retry_at = NULL, finished_at = now()
FROM unnest($1::text[], $2::timestamptz[], $3::text[], $4::text[], $5::text[])
     AS e (request_id, link_created_at, slot, state, reason)
WHERE m.request_id = e.request_id AND m.link_created_at = e.link_created_at AND m.slot = e.slot
  AND m.state = 'deferred'
RETURNING m.state, m.reason;
