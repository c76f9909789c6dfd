-- The next requests that have a schedule, open or not, in the order of their ids: for where a view fails for the
-- status of one. $1: the last id before; $2: how many.
SELECT request_id FROM nudged.schedules WHERE request_id > $1 ORDER BY request_id LIMIT $2;
