-- The instant of this pass; whether this is still the database that the daemon adopted: one that was
-- restored under a running daemon is not; and whether the application put a view in the place of one of
-- its tables. $1: environment.
SELECT now(), EXISTS (
    SELECT 1 FROM nudged.installation
    WHERE environment = $1::text
      AND identity = (SELECT oid::text FROM pg_database WHERE datname = current_database())
      AND coalesce(written_by = xmin, true)),
    EXISTS (
    SELECT 1 FROM pg_class
    WHERE oid IN (to_regclass('nudged.requests'), to_regclass('nudged.links'), to_regclass('nudged.documents'))
      AND relkind <> 'r');
