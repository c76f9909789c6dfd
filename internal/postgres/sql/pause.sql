-- Pauses a request until an instant (infinity: until resumed), or resumes it (NULL). $1: request;
-- $2: until; $3: action; $4: actor; $5: why.
WITH moved AS (
    UPDATE nudged.requests
    SET paused_until = $2::timestamptz, pause_reason = CASE WHEN $2::timestamptz IS NULL THEN NULL ELSE $5::text END
    WHERE id = $1::text
    RETURNING id::text
), noted AS (
    INSERT INTO nudged.events (actor, action, request_id, detail, why)
    SELECT $4::text, $3::text, id, 'until ' || $2::text, $5::text FROM moved
), touched AS (
    SELECT nudged.touch(id) FROM moved
)
SELECT (SELECT count(*) FROM moved), (SELECT count(*) FROM touched);
