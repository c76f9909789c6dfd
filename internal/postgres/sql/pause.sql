-- Pauses a request until an instant (infinity: until resumed), or ends the pause that it is in (NULL).
-- $1: request; $2: until; $3: action; $4: actor; $5: why.
WITH found AS (
    SELECT 1 FROM nudged.requests WHERE id = $1::text LIMIT 1
), moved AS (
    UPDATE nudged.requests
    SET paused_until = $2::timestamptz, pause_reason = CASE WHEN $2::timestamptz IS NULL THEN NULL ELSE $5::text END
    WHERE id = $1::text AND ($2::timestamptz IS NOT NULL OR paused_until > now())
    RETURNING id::text
), noted AS (
    INSERT INTO nudged.events (actor, action, request_id, detail, why)
    SELECT $4::text, $3::text, id, 'until ' || $2::text, $5::text FROM moved
), touched AS (
    SELECT nudged.touch(id) FROM moved
)
SELECT (SELECT count(*) FROM found), (SELECT count(*) FROM moved), (SELECT count(*) FROM touched);
