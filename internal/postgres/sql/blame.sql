-- Notes that a view fails for the request of the next row of the ledger, which has ended. The next pass finds out
-- whether it still does. $1, $2, $3: the row before.
INSERT INTO nudged.schedules (request_id, wake_at, problem)
SELECT request_id, '-infinity', 'unreadable_row' FROM nudged.reminders
WHERE (request_id, link_created_at, slot) > ($1::text, $2::timestamptz, $3::text)
ORDER BY request_id, link_created_at, slot
LIMIT 1
ON CONFLICT ON CONSTRAINT schedules_pkey DO UPDATE SET wake_at = '-infinity', problem = 'unreadable_row';
