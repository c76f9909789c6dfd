-- Makes requests be looked at in the next pass. $1: request ids. A schedule that somebody has locked
-- is passed over, so that no application waits for us; its id is returned, to be woken later.
WITH locked AS (
    SELECT request_id FROM nudged.schedules
    WHERE request_id = ANY ($1::text[])
    FOR UPDATE SKIP LOCKED
), woken AS (
    UPDATE nudged.schedules SET wake_at = '-infinity'
    WHERE request_id IN (SELECT request_id FROM locked)
)
SELECT s.request_id FROM nudged.schedules s
WHERE s.request_id = ANY ($1::text[]) AND s.request_id NOT IN (SELECT request_id FROM locked);
