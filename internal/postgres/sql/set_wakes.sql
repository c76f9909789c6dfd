-- Moves the schedules that this pass has locked to their next wake; NULL: not before a change. $5: the
-- fingerprint of what it was planned with; NULL where the request is not open.
UPDATE nudged.schedules s
SET wake_at = w.wake_at, problem = w.problem, account_id = w.account_id, planned_by = w.planned_by
FROM unnest($1::text[], $2::timestamptz[], $3::text[], $4::text[], $5::integer[])
     AS w (request_id, wake_at, problem, account_id, planned_by)
WHERE s.request_id = w.request_id;
