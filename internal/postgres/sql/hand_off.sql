-- Commit 2: marks claims as sending, the last thing before content may leave. Whether the request
-- is still open, by everything that can close it, is read again here; a claim that may not go is
-- skipped with the reason, or stays unknown where it repeats an attempt that may have been accepted.
-- A claim whose address was edited meanwhile is planned anew. $8: the addresses as the mail server will hear
-- them, in lower case: one that is suppressed in whatever spelling is there in this one too, or in that of the row.
WITH asked AS (
    SELECT a.*
    FROM unnest($1::uuid[], $2::text[], $3::timestamptz[], $4::text[], $5::text[], $6::text[], $8::text[])
         AS a (claim_id, request_id, link_created_at, slot, recipient, message_id, envelope)
), verdicts AS MATERIALIZED ( -- else each mention of the reason works it out again
    SELECT a.*,
           CASE
               WHEN r.status IS NULL OR r.status NOT IN ('pending', 'pending_resubmission') THEN 'request_closed'
               WHEN l.created_at IS NULL OR l.revoked_at IS NOT NULL THEN 'link_revoked'
               -- Less than a second apart it is the same link, cut or rounded by whoever wrote it back.
               WHEN l.created_at <= a.link_created_at - interval '1 second'
                 OR l.created_at >= a.link_created_at + interval '1 second' THEN 'link_replaced'
               WHEN l.expires_at <= now() THEN 'link_expired'
               WHEN r.opted_out_at IS NOT NULL THEN 'opted_out'
               WHEN EXISTS (SELECT 1 FROM nudged.suppressions s WHERE s.address = a.envelope OFFSET 0)
                    THEN 'suppressed'
               WHEN a.envelope <> lower(btrim(a.recipient))
                AND EXISTS (SELECT 1 FROM nudged.suppressions s WHERE s.address = lower(btrim(a.recipient)) OFFSET 0)
                    THEN 'suppressed'
               WHEN r.paused_until > now() THEN 'paused'
               WHEN r.recipient_email IS DISTINCT FROM a.recipient THEN 'recipient_changed'
           END AS reason
    FROM asked a
    LEFT JOIN LATERAL (
        SELECT status::text, recipient_email::text, paused_until::timestamptz, opted_out_at
        FROM nudged.requests WHERE id = a.request_id LIMIT 1) r ON true
    LEFT JOIN LATERAL (
        SELECT created_at, expires_at::timestamptz, revoked_at
        FROM nudged.links WHERE request_id = a.request_id
        ORDER BY links.created_at DESC LIMIT 1) l ON true
), moved AS (
    UPDATE nudged.reminders m
    SET state         = CASE WHEN v.reason IS NULL THEN 'sending'
                             WHEN m.unknown_since IS NOT NULL THEN 'unknown'
                             WHEN v.reason = 'recipient_changed' THEN 'deferred'
                             ELSE 'skipped' END,
        reason        = CASE WHEN v.reason IS NOT NULL AND m.unknown_since IS NOT NULL THEN 'reply_lost' ELSE v.reason END,
        recipient     = v.recipient,
        message_id    = v.message_id,
        attempt       = m.attempt - CASE WHEN v.reason = 'recipient_changed' THEN 1 ELSE 0 END,
        handed_off_at = CASE WHEN v.reason IS NULL THEN now() ELSE m.unknown_since END,
        retry_at      = CASE WHEN v.reason = 'recipient_changed' AND m.unknown_since IS NULL THEN now() END,
        finished_at   = CASE WHEN v.reason <> 'recipient_changed' OR v.reason IS NOT NULL AND m.unknown_since IS NOT NULL
                             THEN now() END,
        -- A lease that ends soon is given anew; otherwise the indexed column stays as it is.
        lease_until   = CASE WHEN v.reason IS NOT NULL THEN NULL
                             WHEN m.lease_until < now() + $7::interval / 2 THEN now() + $7::interval
                             ELSE m.lease_until END
    FROM verdicts v
    WHERE m.request_id = v.request_id AND m.link_created_at = v.link_created_at AND m.slot = v.slot
      AND m.claim_id = v.claim_id AND m.state IN ('claimed', 'sending')
    RETURNING m.claim_id, m.request_id, v.reason
)
SELECT claim_id, coalesce(reason, '') FROM moved;
