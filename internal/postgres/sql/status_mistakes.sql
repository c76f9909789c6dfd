-- Requests whose row has a mistake, and what it says there; an address is left out, and so is a row that cannot
-- be read. $1: how many.
SELECT s.request_id, s.problem, coalesce(CASE s.problem
           WHEN 'unknown_cadence' THEN r.cadence
           WHEN 'anchor_out_of_range' THEN l.created_at
           WHEN 'unknown_zone' THEN r.time_zone
           WHEN 'unknown_locale' THEN r.locale
       END, '')
FROM (SELECT request_id, problem FROM nudged.schedules WHERE problem IS NOT NULL ORDER BY problem LIMIT $1) AS s
LEFT JOIN LATERAL (
    SELECT cadence::text, time_zone::text, locale::text FROM nudged.requests
    WHERE id = s.request_id AND s.problem <> 'unreadable_row' OFFSET 0) r ON true
LEFT JOIN LATERAL (
    SELECT created_at::text FROM nudged.links
    WHERE request_id = s.request_id AND s.problem <> 'unreadable_row' ORDER BY links.created_at DESC LIMIT 1) l ON true
ORDER BY s.problem, s.request_id;
