-- Records outcomes. Only the row that still carries the claim id is touched, so an outcome can be
-- recorded twice without harm. A row that was settled as unknown meanwhile takes the truth from
-- the very worker that has it; and whatever a person decided, accepted is accepted. A refused
-- repetition says nothing about the attempt before it, which stays unknown: unknown_since is the
-- hand-off of the first attempt in doubt, and where that is this very attempt the doubt is over.
UPDATE nudged.reminders m
SET state       = CASE WHEN o.state = 'failed' AND m.unknown_since IS NOT NULL
                         AND m.unknown_since IS DISTINCT FROM m.handed_off_at THEN 'unknown' ELSE o.state END,
    reason      = CASE WHEN o.state = 'failed' AND m.unknown_since IS NOT NULL
                         AND m.unknown_since IS DISTINCT FROM m.handed_off_at THEN 'reply_lost' ELSE o.reason END,
    smtp_code   = o.smtp_code,
    smtp_reply  = o.smtp_reply,
    attempt     = m.attempt - CASE WHEN o.keep_attempt THEN 1 ELSE 0 END,
    retry_since = CASE WHEN o.keep_attempt AND m.unknown_since IS NULL THEN now() ELSE m.retry_since END,
    retry_at    = CASE o.state WHEN 'deferred' THEN now() + o.retry_in END,
    finished_at = CASE o.state WHEN 'deferred' THEN NULL ELSE now() END,
    handed_off_at = coalesce(m.handed_off_at, m.unknown_since),
    unknown_since = CASE WHEN o.state = 'unknown' THEN coalesce(m.unknown_since, m.handed_off_at)
                         WHEN m.unknown_since <> m.handed_off_at OR m.handed_off_at IS NULL THEN m.unknown_since
                    END,
    lease_until = NULL
FROM unnest($1::uuid[], $2::text[], $3::timestamptz[], $4::text[], $5::text[], $6::text[], $7::integer[],
            $8::text[], $9::boolean[], $10::interval[])
     AS o (claim_id, request_id, link_created_at, slot, state, reason, smtp_code, smtp_reply, keep_attempt, retry_in)
WHERE m.request_id = o.request_id AND m.link_created_at = o.link_created_at AND m.slot = o.slot
  AND m.claim_id = o.claim_id
  AND (m.state IN ('claimed', 'sending', 'unknown') OR (m.state = 'deferred' AND o.state = 'sent'));
