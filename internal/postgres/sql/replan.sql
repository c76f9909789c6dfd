-- Makes the next stretch of open requests be planned anew, after a change of configuration or zone
-- data. $1: the last request id of the stretch before; $2: how many schedules to walk. Returns the
-- last request id walked, NULL at the end, and the requests whose schedule somebody else has locked:
-- to wait for one here would make whoever wants another of the stretch wait too.
WITH stretch AS MATERIALIZED (
    SELECT request_id, wake_at FROM nudged.schedules
    WHERE request_id > $1
    ORDER BY request_id
    LIMIT $2
), planned AS MATERIALIZED (
    SELECT request_id FROM stretch
    WHERE wake_at IS DISTINCT FROM '-infinity'
      AND EXISTS (SELECT 1 FROM nudged.requests r
                  WHERE r.id = stretch.request_id AND r.status IN ('pending', 'pending_resubmission')
                  OFFSET 0)
), free AS MATERIALIZED (
    SELECT request_id FROM nudged.schedules
    WHERE request_id = ANY (ARRAY(SELECT request_id FROM planned))
    FOR UPDATE SKIP LOCKED
), touched AS (
    UPDATE nudged.schedules SET wake_at = '-infinity'
    WHERE request_id = ANY (ARRAY(SELECT request_id FROM free))
)
SELECT (SELECT max(request_id) FROM stretch),
       ARRAY(SELECT request_id FROM planned EXCEPT SELECT request_id FROM free);
