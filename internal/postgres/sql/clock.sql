-- The instant of this pass, and whether this is still the database that the daemon adopted: one that
-- was restored under a running daemon is not. $1: environment.
SELECT now(), EXISTS (
    SELECT 1 FROM nudged.installation
    WHERE environment = $1::text
      AND identity = (SELECT oid::text FROM pg_database WHERE datname = current_database()));
