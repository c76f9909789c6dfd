-- The ledger rows of some requests, across their links. $1: request ids.
SELECT request_id, link_created_at, slot, due_at, state, coalesce(reason, ''), attempt, claim_id,
       coalesce(claimed_by, ''), lease_until, retry_at, retry_since, unknown_since, coalesce(recipient, ''),
       coalesce(message_id, ''), coalesce(smtp_code, 0), coalesce(smtp_reply, ''),
       created_at, handed_off_at, finished_at
FROM nudged.reminders
WHERE request_id = ANY ($1::text[])
ORDER BY request_id, link_created_at, due_at, slot;
