-- A person settles unknown outcomes of one slot. $1: request; $2: slot; $3: link, as a log tells it,
-- to the second (the nearest counts), or NULL where the request has one such outcome only; $4: true where it was sent; $5: actor; $6: why. Not sent: it
-- may go out again, by a plan of its own that asks all the rules anew.
-- A pass that is about to repeat it is waited for: it has locked the schedule first, and so does this.
WITH scheduled AS MATERIALIZED (
    SELECT FROM nudged.schedules WHERE request_id = $1 FOR UPDATE
), moved AS (
    UPDATE nudged.reminders
    SET state       = CASE WHEN $4::boolean THEN 'sent' ELSE 'deferred' END,
        reason      = CASE WHEN $4::boolean THEN NULL ELSE 'not_sent' END,
        retry_at    = CASE WHEN $4::boolean THEN NULL ELSE now() END,
        retry_since = CASE WHEN $4::boolean THEN retry_since ELSE now() END,
        finished_at = CASE WHEN $4::boolean THEN finished_at END,
        unknown_since = NULL
    WHERE (SELECT count(*) FROM scheduled) >= 0
      AND request_id = $1 AND slot = $2 AND state = 'unknown'
      AND ($3::timestamptz IS NULL OR link_created_at = (
          SELECT m.link_created_at FROM nudged.reminders m
          WHERE m.request_id = $1 AND m.slot = $2 AND m.state = 'unknown'
            AND m.link_created_at > $3::timestamptz - interval '1 second' AND m.link_created_at < $3::timestamptz + interval '1 second'
          ORDER BY abs(extract(epoch FROM m.link_created_at - $3::timestamptz))
          LIMIT 1))
    RETURNING request_id, link_created_at, slot
), noted AS (
    INSERT INTO nudged.events (actor, action, request_id, link_created_at, slot, detail, why)
    SELECT $5::text, 'resolve', request_id, link_created_at, slot,
           CASE WHEN $4::boolean THEN 'sent' ELSE 'not_sent' END, $6::text
    FROM moved
), touched AS (
    SELECT nudged.touch(request_id) FROM moved
)
SELECT (SELECT count(*) FROM moved), (SELECT count(*) FROM touched);
