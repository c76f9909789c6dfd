-- Leaves it to this replica for a while to plan all open requests anew, unless another one has that.
-- $1: for how long; $2: this replica has it already.
UPDATE nudged.installation SET planning_until = now() + $1::interval
WHERE $2::boolean OR planning_until IS NULL OR planning_until <= now();
