-- How many requests are open, by status.
SELECT status::text, count(*) FROM nudged.requests
WHERE status IN ('pending', 'pending_resubmission')
GROUP BY status;
