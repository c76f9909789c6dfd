-- What is due and not yet sent, since when, what is unknown, and which rows have mistakes. Only
-- small partial indexes are read.
SELECT (SELECT count(*) FROM nudged.schedules WHERE wake_at > '-infinity' AND wake_at <= now())
     + (SELECT count(*) FROM nudged.reminders WHERE lease_until IS NOT NULL)
     + (SELECT count(*) FROM nudged.reminders WHERE retry_at > now()),
       least(
           (SELECT min(wake_at) FROM nudged.schedules WHERE wake_at > '-infinity' AND wake_at <= now()),
           (SELECT min(due_at) FROM nudged.reminders WHERE lease_until IS NOT NULL),
           (SELECT min(due_at) FROM nudged.reminders WHERE retry_at IS NOT NULL)),
       (SELECT count(*) FROM nudged.reminders WHERE reason IN ('reply_lost', 'worker_lost')),
       (SELECT coalesce(jsonb_object_agg(problem, n), '{}')
        FROM (SELECT problem, count(*) AS n FROM nudged.schedules WHERE problem IS NOT NULL GROUP BY problem) AS p);
