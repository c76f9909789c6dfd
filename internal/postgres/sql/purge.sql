-- Deletes from the next stretch of the ledger the rows of links that are over: of those that a newer link of an open
-- request replaced, where every row of the link ended longer than the retention ago, and of requests that have ended,
-- where every row of the request did. A row of an open request's present link stays however old it is, or its slot
-- would be sent a second time; an unknown outcome stays until somebody settles it, and the rows beside it. The newest
-- such link is noted in the schedule of its request: should the request be opened again, or get a link of up to then
-- back, nothing more may go out for it. A schedule that somebody has locked is passed over until the next time, and so
-- is a request that a view fails for.
-- $1, $2, $3: the last row of the stretch before; $4: how many rows to walk; $5: retention. Returns the last row
-- walked and how many were deleted. Rows are deleted by their place, and OFFSET 0 fences the look-up of each: a
-- stretch costs the same however long the ledger is.
WITH stretch AS MATERIALIZED (
    SELECT ctid AS place, request_id, link_created_at, slot, state, finished_at
    FROM nudged.reminders
    WHERE (request_id, link_created_at, slot) > ($1::text, $2::timestamptz, $3::text)
    ORDER BY request_id, link_created_at, slot
    LIMIT $4
), aged AS MATERIALIZED (
    SELECT k.request_id, k.link_created_at
    FROM (SELECT DISTINCT request_id, link_created_at FROM stretch
          WHERE finished_at < now() - $5::interval AND state <> 'unknown') k
    WHERE NOT EXISTS (
          SELECT 1 FROM nudged.reminders y
          WHERE y.request_id = k.request_id AND y.link_created_at = k.link_created_at
            AND (y.finished_at < now() - $5::interval AND y.state <> 'unknown') IS NOT TRUE
          OFFSET 0)
), locked AS MATERIALIZED (
    SELECT request_id FROM nudged.schedules
    WHERE request_id = ANY (ARRAY(SELECT request_id FROM aged)) AND problem IS DISTINCT FROM 'unreadable_row'
    FOR UPDATE SKIP LOCKED
), ours AS MATERIALIZED (
    SELECT request_id, link_created_at FROM aged a
    WHERE a.request_id IN (SELECT request_id FROM locked)
       OR NOT EXISTS (SELECT 1 FROM nudged.schedules s WHERE s.request_id = a.request_id OFFSET 0)
), over AS MATERIALIZED (
    SELECT request_id, link_created_at FROM ours o
    WHERE coalesce(
          (SELECT l.created_at >= o.link_created_at + interval '1 second' -- closer, it is the same link
           FROM nudged.requests r JOIN nudged.links l ON l.request_id = r.id
           WHERE r.id = o.request_id AND r.status IN ('pending', 'pending_resubmission')
           ORDER BY l.created_at DESC
           LIMIT 1),
          NOT EXISTS (
          SELECT 1 FROM nudged.reminders y
          WHERE y.request_id = o.request_id AND (y.finished_at < now() - $5::interval AND y.state <> 'unknown') IS NOT TRUE
          OFFSET 0))
), noted AS (
    INSERT INTO nudged.schedules AS s (request_id, wake_at, purged_until)
    SELECT request_id, NULL, max(link_created_at) FROM over GROUP BY request_id ORDER BY request_id
    ON CONFLICT ON CONSTRAINT schedules_pkey DO UPDATE SET purged_until = greatest(s.purged_until, excluded.purged_until)
), dropped AS (
    DELETE FROM nudged.reminders m
    WHERE m.ctid = ANY (ARRAY(SELECT place FROM stretch JOIN over USING (request_id, link_created_at)))
      AND m.finished_at < now() - $5::interval AND m.state <> 'unknown' -- still, if somebody changed it meanwhile
    RETURNING 1
)
SELECT request_id, link_created_at, slot, (SELECT count(*) FROM dropped)
FROM stretch
ORDER BY request_id DESC, link_created_at DESC, slot DESC
LIMIT 1;
