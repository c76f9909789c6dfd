-- Ends deferred reminders without another attempt: skipped, failed for want of time, or unknown where
-- an earlier attempt may have been accepted.
UPDATE nudged.reminders m
SET state = e.state, reason = e.reason, retry_at = NULL, finished_at = now(),
    handed_off_at = coalesce(m.handed_off_at, m.unknown_since)
FROM unnest($1::text[], $2::timestamptz[], $3::text[], $4::text[], $5::text[])
     AS e (request_id, link_created_at, slot, state, reason)
WHERE m.request_id = e.request_id AND m.link_created_at = e.link_created_at AND m.slot = e.slot
  AND m.state = 'deferred'
RETURNING m.state, m.reason;
