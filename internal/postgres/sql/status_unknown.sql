-- Reminders whose fate is unknown, the oldest rows first. $1: how many.
SELECT request_id, link_created_at, slot, due_at, state, reason, attempt, handed_off_at,
       coalesce(claimed_by, ''), coalesce(message_id, ''), coalesce(smtp_code, 0), coalesce(smtp_reply, '')
FROM nudged.reminders
WHERE reason IN ('reply_lost', 'worker_lost')
ORDER BY created_at
LIMIT $1;
