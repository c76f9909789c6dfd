-- Notes the environment of this database the first time a daemon meets it. $1: environment.
WITH first AS (
    INSERT INTO nudged.installation (environment) VALUES ($1::text)
    ON CONFLICT (singleton) DO NOTHING
    RETURNING environment, adopted_at
)
SELECT environment, adopted_at FROM first
UNION ALL
SELECT environment, adopted_at FROM nudged.installation
LIMIT 1;
