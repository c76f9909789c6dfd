-- Who comes next where more is due than a pass can take: the first due of each account, then the
-- second of each, and so on. $1: at most so many request ids; $2: of so many that are due, the
-- longest overdue first, so that the question has a bounded price whatever the backlog. Nothing is
-- locked: who is taken meanwhile is passed over.
SELECT request_id, coalesce(account_id, '')
FROM (
    SELECT request_id, account_id, wake_at, row_number() OVER (PARTITION BY account_id ORDER BY wake_at) AS turn
    FROM (
        SELECT request_id, account_id, wake_at
        FROM nudged.schedules
        WHERE wake_at > '-infinity' AND wake_at <= now()
        ORDER BY wake_at
        LIMIT $2) due
) lined_up
ORDER BY turn, wake_at
LIMIT $1;
