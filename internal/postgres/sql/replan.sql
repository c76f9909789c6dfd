-- Makes the next stretch of open requests be planned anew, after a change of configuration or zone
-- data. $1: the last request id of the stretch before; $2: how many schedules to walk. Returns the
-- last request id walked, NULL at the end.
WITH stretch AS (
    SELECT request_id FROM nudged.schedules
    WHERE request_id > $1
    ORDER BY request_id
    LIMIT $2
), touched AS (
    UPDATE nudged.schedules s SET wake_at = '-infinity'
    FROM stretch
    WHERE s.request_id = stretch.request_id AND s.wake_at IS DISTINCT FROM '-infinity'
      AND EXISTS (SELECT 1 FROM nudged.requests r
                  WHERE r.id = s.request_id AND r.status IN ('pending', 'pending_resubmission'))
)
SELECT max(request_id) FROM stretch;
