-- Once in a daemon's life: finds deferred reminders whose request wakes after their time, because a
-- process died before it could wake one that had been locked. Returns the request ids.
SELECT m.request_id
FROM nudged.reminders m JOIN nudged.schedules s ON s.request_id = m.request_id
WHERE m.retry_at IS NOT NULL AND (s.wake_at IS NULL OR s.wake_at > m.retry_at);
