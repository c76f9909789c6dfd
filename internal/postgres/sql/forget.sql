-- Drops the schedules of requests that are gone, link and all. One that notes a link which the ledger was purged of
-- stays: the request may come back, out of a backup of the application's. $1: request ids.
WITH dropped AS (
    DELETE FROM nudged.schedules WHERE request_id = ANY ($1::text[]) AND purged_until IS NULL
)
UPDATE nudged.schedules SET wake_at = NULL, problem = NULL, account_id = NULL, planned_by = NULL
WHERE request_id = ANY ($1::text[]) AND purged_until IS NOT NULL;
