-- Reminders whose fate is unknown, the oldest first.
SELECT request_id, link_created_at, slot, due_at, reason, attempt, handed_off_at, finished_at,
       coalesce(claimed_by, ''), coalesce(message_id, ''), coalesce(smtp_code, 0), coalesce(smtp_reply, '')
FROM nudged.reminders
WHERE reason IN ('reply_lost', 'worker_lost')
ORDER BY handed_off_at, request_id;
