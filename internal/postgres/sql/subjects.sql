-- Everything about some requests that a plan and a mail need, but for ledger rows and documents.
-- $1: request ids. Each subquery is fenced by LIMIT or OFFSET, so that it stays an index look-up of
-- one row, whether requests and links are tables or views; of a view with several links for one
-- request the newest counts. The application's instants go by their full
-- names, for the complaint about one without a time zone.
SELECT t.request_id,
       now(),
       coalesce((SELECT adopted_at FROM nudged.installation), now()),
       (SELECT not_before FROM nudged.installation),
       r.found, r.account_id, r.status, r.recipient_email, r.recipient_name, r.title, r.message, r.deadline AS "nudged.requests.deadline",
       r.cadence, r.time_zone, r.locale, r.sender_name, r.reply_to,
       r.paused_until AS "nudged.requests.paused_until", r.pause_reason, r.opted_out_at AS "nudged.requests.opted_out_at",
       l.found, l.url, l.created_at AS "nudged.links.created_at", l.expires_at AS "nudged.links.expires_at",
       l.revoked_at AS "nudged.links.revoked_at",
       EXISTS (SELECT 1 FROM nudged.suppressions s WHERE s.address = lower(btrim(r.recipient_email)) OFFSET 0)
FROM unnest($1::text[]) AS t (request_id)
LEFT JOIN LATERAL (
    SELECT true AS found, account_id::text, status::text, recipient_email::text, recipient_name::text, title::text,
           message::text, deadline, cadence::text, time_zone::text, locale::text, sender_name::text, reply_to::text,
           paused_until, pause_reason::text, opted_out_at
    FROM nudged.requests
    WHERE id = t.request_id
    LIMIT 1) r ON true
LEFT JOIN LATERAL (
    SELECT true AS found, url::text, created_at, expires_at, revoked_at
    FROM nudged.links
    WHERE request_id = t.request_id
    ORDER BY links.created_at DESC
    LIMIT 1) l ON true;
