-- Lists the next stretch of open requests that are not waiting to be planned already, for a change of
-- configuration or zone data. $1: the last request id of the stretch before; $2: how many schedules to
-- walk. Returns the last request id walked, NULL at the end, and the open requests of the stretch.
WITH stretch AS MATERIALIZED (
    SELECT request_id, wake_at FROM nudged.schedules
    WHERE request_id > $1
    ORDER BY request_id
    LIMIT $2
)
SELECT (SELECT max(request_id) FROM stretch),
       ARRAY(SELECT request_id FROM stretch
             WHERE wake_at IS DISTINCT FROM '-infinity'
               AND EXISTS (SELECT 1 FROM nudged.requests r
                           WHERE r.id = stretch.request_id AND r.status IN ('pending', 'pending_resubmission')
                           OFFSET 0));
