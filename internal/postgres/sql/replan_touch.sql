-- Makes requests be planned at the next pass. Returns those whose schedule somebody else has locked: to
-- wait for one here would make whoever wants another of them wait too. What somebody else has touched
-- meanwhile is done. $1: request ids.
WITH wanted AS MATERIALIZED (
    SELECT s.request_id
    FROM unnest($1::text[]) AS a (request_id) JOIN nudged.schedules s USING (request_id)
    WHERE s.wake_at IS DISTINCT FROM '-infinity'
), free AS MATERIALIZED ( -- by a join: an array would be searched again for each row that changed meanwhile
    SELECT s.request_id, s.wake_at
    FROM wanted w JOIN nudged.schedules s USING (request_id)
    FOR UPDATE OF s SKIP LOCKED
), touched AS (
    UPDATE nudged.schedules s SET wake_at = '-infinity'
    FROM free f
    WHERE s.request_id = f.request_id AND f.wake_at IS DISTINCT FROM '-infinity'
)
SELECT request_id FROM wanted EXCEPT SELECT request_id FROM free;
