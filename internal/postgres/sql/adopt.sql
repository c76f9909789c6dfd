-- Notes environment and identity of this database the first time a daemon meets it. $1: environment.
WITH self AS (
    SELECT oid::text AS identity FROM pg_database WHERE datname = current_database()
), first AS (
    INSERT INTO nudged.installation (environment, identity, written_by)
    SELECT $1::text, identity, pg_current_xact_id()::xid FROM self
    ON CONFLICT (singleton) DO NOTHING
    RETURNING environment
)
SELECT environment, true FROM first
UNION ALL
SELECT environment, coalesce(identity, '') = (SELECT identity FROM self) AND coalesce(written_by = xmin, true)
FROM nudged.installation
LIMIT 1;
