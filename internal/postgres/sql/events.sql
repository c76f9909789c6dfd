-- What people did about one request, the oldest first. $1: request.
SELECT created_at, actor, action, coalesce(slot, ''), coalesce(detail, ''), why
FROM nudged.events WHERE request_id = $1 ORDER BY id;
