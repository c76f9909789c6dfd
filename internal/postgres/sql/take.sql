-- Takes requests to look at and locks their schedules until the pass commits. Another replica
-- passes over what is locked. $1: at most so many that wait to be planned; $2: at most so many
-- whose wake has come, the longest overdue first. Nothing is before -infinity: written as a range
-- with an order, the first part reads the index even where nearly every row is at -infinity. With each comes the newest link that the
-- ledger was purged of.
WITH fresh AS MATERIALIZED (
    SELECT request_id, purged_until FROM nudged.schedules
    WHERE wake_at <= '-infinity'
    ORDER BY wake_at
    LIMIT $1
    FOR UPDATE SKIP LOCKED
), due AS MATERIALIZED (
    SELECT request_id, purged_until FROM nudged.schedules
    WHERE wake_at > '-infinity' AND wake_at <= now()
    ORDER BY wake_at
    LIMIT $2
    FOR UPDATE SKIP LOCKED
)
SELECT request_id, purged_until, false AS fresh FROM due
UNION ALL
SELECT request_id, purged_until, true FROM fresh;
