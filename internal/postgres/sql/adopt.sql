-- Notes environment and identity of this database the first time a daemon meets it. $1: environment.
WITH self AS (
    SELECT oid::text AS identity, nudged.server_identity() AS server FROM pg_database WHERE datname = current_database()
), first AS (
    INSERT INTO nudged.installation (environment, identity, server)
    SELECT $1::text, identity, server FROM self
    ON CONFLICT (singleton) DO NOTHING
    RETURNING environment, identity, server
), installed AS (
    SELECT environment, identity, server FROM first
    UNION ALL
    SELECT environment, identity, server FROM nudged.installation
    LIMIT 1
)
SELECT i.environment, coalesce(i.identity, '') = self.identity AND coalesce(i.server = self.server, true)
FROM installed i CROSS JOIN self;
