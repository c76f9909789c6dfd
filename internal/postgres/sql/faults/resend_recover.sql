-- FAULTY on purpose (build tag fault_resend): recover.sql, but a lost hand-off is deferred and so
-- sent again.
WITH lost AS (
    SELECT request_id, link_created_at, slot
    FROM nudged.reminders
    WHERE lease_until <= now()
    ORDER BY lease_until
    LIMIT 500
    FOR UPDATE SKIP LOCKED
), moved AS (
    UPDATE nudged.reminders m
    SET state = 'deferred', reason = 'lease_lost', attempt = m.attempt - 1,
        retry_at = now(), retry_since = now(), lease_until = NULL
    FROM lost
    WHERE m.request_id = lost.request_id AND m.link_created_at = lost.link_created_at AND m.slot = lost.slot
    RETURNING m.request_id, m.link_created_at, m.slot, m.state, m.attempt, m.claimed_by
), locked AS (
    SELECT request_id FROM nudged.schedules
    WHERE request_id IN (SELECT request_id FROM moved)
    FOR UPDATE SKIP LOCKED
), woken AS (
    UPDATE nudged.schedules SET wake_at = '-infinity'
    WHERE request_id IN (SELECT request_id FROM locked)
)
SELECT request_id, link_created_at, slot, state, attempt, coalesce(claimed_by, ''),
       request_id NOT IN (SELECT request_id FROM locked) AS passed_over
FROM moved;
