-- Requests whose row names a cadence or a zone that does not exist, and what it names. $1: how many.
SELECT s.request_id, s.problem, coalesce(CASE s.problem WHEN 'unknown_cadence' THEN r.cadence ELSE r.time_zone END, '')
FROM (SELECT request_id, problem FROM nudged.schedules WHERE problem IS NOT NULL ORDER BY problem LIMIT $1) AS s
LEFT JOIN LATERAL (
    SELECT cadence::text, time_zone::text FROM nudged.requests WHERE id = s.request_id OFFSET 0) r ON true
ORDER BY s.problem, s.request_id;
