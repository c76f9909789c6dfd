-- The newest link of each of some requests that the ledger was purged of. $1: request ids.
SELECT request_id, purged_until FROM nudged.schedules
WHERE request_id = ANY ($1::text[]) AND purged_until IS NOT NULL;
