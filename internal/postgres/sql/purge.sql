-- Deletes from the next stretch of the ledger what can never be computed again and is older than
-- the retention: rows of requests that are over, and of links that were replaced. A row of an open
-- request's present link stays however old it is, or its slot would be sent a second time; an
-- unknown outcome stays until somebody settles it. $1, $2, $3: the last row of the stretch before;
-- $4: how many rows to walk; $5: retention. Returns the last row walked and how many were deleted.
-- Rows are deleted by their place, and OFFSET 0 fences the look-up of each: a stretch costs the same
-- however long the ledger is.
WITH stretch AS MATERIALIZED (
    SELECT ctid AS place, request_id, link_created_at, slot, state, finished_at
    FROM nudged.reminders
    WHERE (request_id, link_created_at, slot) > ($1::text, $2::timestamptz, $3::text)
    ORDER BY request_id, link_created_at, slot
    LIMIT $4
), over AS MATERIALIZED (
    SELECT place FROM stretch s
    WHERE s.finished_at < now() - $5::interval
      AND s.state <> 'unknown'
      AND NOT EXISTS (
          SELECT 1 FROM nudged.requests r JOIN nudged.links l ON l.request_id = r.id
          WHERE r.id = s.request_id AND r.status IN ('pending', 'pending_resubmission')
            AND l.created_at > s.link_created_at - interval '1 second' -- closer, it is the same link
            AND l.created_at < s.link_created_at + interval '1 second'
          OFFSET 0)
), dropped AS (
    DELETE FROM nudged.reminders m
    WHERE m.ctid = ANY (ARRAY(SELECT place FROM over))
      AND m.finished_at < now() - $5::interval AND m.state <> 'unknown' -- still, if somebody changed it meanwhile
    RETURNING 1
)
SELECT request_id, link_created_at, slot, (SELECT count(*) FROM dropped)
FROM stretch
ORDER BY request_id DESC, link_created_at DESC, slot DESC
LIMIT 1;
