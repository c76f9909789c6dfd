-- What is due and not yet sent: how many are late, how many are not, and the due of the oldest; how
-- many requests wait to be planned; how many outcomes are unknown. $1: how late is late; $2: where each
-- count stops, so that the answer costs no more the more there is. ORDER BY counts the oldest first, and
-- keeps a count on its index when most of a table matches.
WITH waiting AS (
    (SELECT wake_at AS due_at FROM nudged.schedules
     WHERE wake_at > '-infinity' AND wake_at <= now() ORDER BY wake_at LIMIT $2)
    UNION ALL
    (SELECT due_at FROM nudged.reminders WHERE lease_until IS NOT NULL LIMIT $2)
    UNION ALL
    (SELECT due_at FROM nudged.reminders WHERE retry_at > now() LIMIT $2)
)
SELECT now(),
       count(*) FILTER (WHERE due_at < now() - $1::interval),
       count(*) FILTER (WHERE due_at >= now() - $1::interval),
       min(due_at),
       (SELECT count(*) FROM (SELECT FROM nudged.schedules WHERE wake_at <= '-infinity' ORDER BY wake_at LIMIT $2) AS s),
       (SELECT count(*) FROM (SELECT FROM nudged.reminders WHERE reason IN ('reply_lost', 'worker_lost') LIMIT $2) AS r)
FROM waiting;
