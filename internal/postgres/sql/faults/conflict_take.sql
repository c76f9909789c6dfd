-- FAULTY on purpose (build tag fault_conflict): take.sql, but nothing is locked.
WITH fresh AS MATERIALIZED (
    SELECT request_id FROM nudged.schedules
    WHERE wake_at = '-infinity'
    LIMIT $1
), due AS MATERIALIZED (
    SELECT request_id FROM nudged.schedules
    WHERE wake_at > '-infinity' AND wake_at <= now()
    ORDER BY wake_at
    LIMIT $2
)
SELECT request_id, true AS fresh FROM fresh
UNION ALL
SELECT request_id, false FROM due;
