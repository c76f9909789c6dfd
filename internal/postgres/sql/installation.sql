-- Whose database this is, and what its wakes were last planned with. No row: no daemon has met it.
SELECT environment,
       coalesce(identity, '') = (SELECT oid::text FROM pg_database WHERE datname = current_database())
           AND coalesce(written_by = xmin, true),
       coalesce(planned_with, '')
FROM nudged.installation;
