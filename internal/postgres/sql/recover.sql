-- Settles the claims whose lease ran out, for workers that went away: a claim whose content never
-- left goes back to be tried again, with its attempt; a hand-off may have been accepted and becomes
-- unknown. Rows that somebody else settles at the same moment are passed over. Schedules that somebody has
-- locked are not woken: passed_over says so, for them to be woken later.
WITH lost AS (
    SELECT request_id, link_created_at, slot, state
    FROM nudged.reminders
    WHERE lease_until <= now()
    ORDER BY lease_until
    LIMIT 500
    FOR UPDATE SKIP LOCKED
), moved AS (
    UPDATE nudged.reminders m
    SET state       = CASE lost.state WHEN 'claimed' THEN 'deferred'   ELSE 'unknown' END,
        reason      = CASE lost.state WHEN 'claimed' THEN 'lease_lost' ELSE 'worker_lost' END,
        attempt     = CASE lost.state WHEN 'claimed' THEN m.attempt - 1 ELSE m.attempt END,
        retry_at    = CASE lost.state WHEN 'claimed' THEN now() END,
        retry_since = CASE WHEN lost.state = 'claimed' AND m.unknown_since IS NULL THEN now() ELSE m.retry_since END,
        finished_at = CASE lost.state WHEN 'claimed' THEN NULL ELSE now() END,
        unknown_since = CASE lost.state WHEN 'claimed' THEN m.unknown_since
                                        ELSE coalesce(m.unknown_since, m.handed_off_at) END,
        lease_until = NULL
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
