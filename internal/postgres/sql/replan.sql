-- Makes open requests be planned anew that were planned with another fingerprint than this one. Schedules
-- that somebody else has locked are passed over, for the next time. $1: the fingerprint. At most 1000 of
-- those below it, above it and without one each: a number that the planner can see.
WITH below AS MATERIALIZED (
    SELECT request_id FROM nudged.schedules
    WHERE wake_at IS DISTINCT FROM '-infinity' AND (wake_at IS NOT NULL OR planned_by IS NOT NULL) AND planned_by < $1
    ORDER BY planned_by
    LIMIT 1000
    FOR UPDATE SKIP LOCKED
), above AS MATERIALIZED (
    SELECT request_id FROM nudged.schedules
    WHERE wake_at IS DISTINCT FROM '-infinity' AND (wake_at IS NOT NULL OR planned_by IS NOT NULL) AND planned_by > $1
    ORDER BY planned_by
    LIMIT 1000
    FOR UPDATE SKIP LOCKED
), without AS MATERIALIZED (
    SELECT request_id FROM nudged.schedules
    WHERE wake_at IS DISTINCT FROM '-infinity' AND (wake_at IS NOT NULL OR planned_by IS NOT NULL) AND planned_by IS NULL
    ORDER BY planned_by
    LIMIT 1000
    FOR UPDATE SKIP LOCKED
), touched AS (
    UPDATE nudged.schedules s SET wake_at = '-infinity'
    FROM (SELECT request_id FROM below UNION ALL SELECT request_id FROM above UNION ALL SELECT request_id FROM without) o
    WHERE s.request_id = o.request_id
    RETURNING s.request_id
)
SELECT count(*) FROM touched;
