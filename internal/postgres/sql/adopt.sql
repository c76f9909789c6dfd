-- Notes environment and identity of this database the first time a daemon meets it. $1: environment.
WITH self AS (
    SELECT oid::text AS identity FROM pg_database WHERE datname = current_database()
), first AS (
    INSERT INTO nudged.installation (environment, identity)
    SELECT $1::text, identity FROM self
    ON CONFLICT (singleton) DO NOTHING
    RETURNING environment, identity
)
SELECT environment, coalesce(identity, '') = (SELECT identity FROM self) FROM first
UNION ALL
SELECT environment, coalesce(identity, '') = (SELECT identity FROM self) FROM nudged.installation
LIMIT 1;
