-- Extends the leases of claims that their worker still holds. $1: claim ids; $2: lease.
UPDATE nudged.reminders SET lease_until = now() + $2::interval
WHERE lease_until IS NOT NULL AND claim_id = ANY ($1::uuid[])
RETURNING claim_id;
