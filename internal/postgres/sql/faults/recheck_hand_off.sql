-- FAULTY on purpose (build tag fault_recheck): hand_off.sql, but whether the request is still open
-- is not read again.
UPDATE nudged.reminders m
SET state         = 'sending',
    recipient     = a.recipient,
    message_id    = a.message_id,
    handed_off_at = now(),
    lease_until   = now() + $7::interval
FROM unnest($1::uuid[], $2::text[], $3::timestamptz[], $4::text[], $5::text[], $6::text[], $8::text[])
     AS a (claim_id, request_id, link_created_at, slot, recipient, message_id, envelope)
WHERE m.request_id = a.request_id AND m.link_created_at = a.link_created_at AND m.slot = a.slot
  AND m.claim_id = a.claim_id AND m.state IN ('claimed', 'sending')
RETURNING m.claim_id, '';
