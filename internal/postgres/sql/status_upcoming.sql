-- How many requests have their next wake in each of some days. $1: where the days begin; $2: where they
-- end; $3: where to stop counting one day.
SELECT (SELECT count(*) FROM (
            SELECT FROM nudged.schedules s
            WHERE s.wake_at > greatest(now(), d.begins) AND s.wake_at <= d.ends LIMIT $3) AS w)
FROM unnest($1::timestamptz[], $2::timestamptz[]) WITH ORDINALITY AS d (begins, ends, number)
ORDER BY d.number;
