-- The next open requests in the order of their ids. $1: the last id before; $2: how many.
SELECT s.request_id FROM nudged.schedules s
WHERE s.request_id > $1
  AND EXISTS (SELECT 1 FROM nudged.requests r
              WHERE r.id = s.request_id AND r.status IN ('pending', 'pending_resubmission'))
ORDER BY s.request_id
LIMIT $2;
