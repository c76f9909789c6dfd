-- The requests of one address: those that have it now, and those with a mail that went to it. The one
-- whose link is the newest comes first. $1: address, in any case; $2: how many. It has no index and
-- reads requests and the ledger from end to end: a person's one-shot question, never the daemon's.
WITH wanted AS MATERIALIZED (
    SELECT id::text AS request_id FROM nudged.requests WHERE lower(btrim(recipient_email::text)) = lower(btrim($1::text))
    UNION
    SELECT request_id FROM nudged.reminders WHERE lower(btrim(recipient)) = lower(btrim($1::text))
)
SELECT w.request_id, count(*) OVER ()
FROM wanted w
LEFT JOIN LATERAL (
    SELECT created_at FROM nudged.links
    WHERE request_id = w.request_id
    ORDER BY links.created_at DESC
    LIMIT 1) l ON true
ORDER BY l.created_at DESC NULLS LAST, w.request_id
LIMIT $2;
