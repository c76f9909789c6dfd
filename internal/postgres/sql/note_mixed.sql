-- Notes that a pass wrote wakes by another fingerprint than the open requests were last planned with: a
-- replica still has the configuration from before. $1: the fingerprint of that pass.
UPDATE nudged.installation SET planned_with = planned_with || ' mixed'
WHERE planned_with <> $1 AND planned_with NOT LIKE '% mixed';
