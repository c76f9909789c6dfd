-- A person takes this database, a restored copy perhaps, for an environment. Slots due until now
-- are never sent: the copy may lack the rows of mails that went out. $1: environment; $2: actor;
-- $3: why.
WITH self AS (
    SELECT oid::text AS identity FROM pg_database WHERE datname = current_database()
), adopted AS (
    INSERT INTO nudged.installation AS i (environment, identity, not_before)
    SELECT $1::text, identity, now() FROM self
    ON CONFLICT (singleton) DO UPDATE
    SET environment = excluded.environment, identity = excluded.identity, adopted_at = now(),
        not_before = now(), planned_with = NULL
)
INSERT INTO nudged.events (actor, action, detail, why) VALUES ($2::text, 'adopt', $1::text, $3::text);
