-- Takes those of the given requests that are still due, and locks their schedules until the pass
-- commits; with the newest link that the ledger was purged of. $1: request ids.
SELECT request_id, purged_until
FROM nudged.schedules
WHERE request_id = ANY ($1::text[]) AND wake_at > '-infinity' AND wake_at <= now()
FOR UPDATE SKIP LOCKED;
