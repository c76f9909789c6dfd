-- The last outcomes of attempts, the newest first. $1: how many. The condition is that of the index
-- reminders_finished.
SELECT request_id, link_created_at, slot, due_at, state, coalesce(reason, ''), attempt, finished_at,
       coalesce(smtp_code, 0), coalesce(smtp_reply, '')
FROM nudged.reminders
WHERE finished_at IS NOT NULL
  AND (reason IS NULL OR reason IN ('recipient_refused', 'message_refused', 'invalid_address', 'template_error',
                                    'retries_exhausted', 'reply_lost', 'worker_lost'))
ORDER BY finished_at DESC
LIMIT $1;
