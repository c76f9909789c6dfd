-- A person takes this database, a restored copy perhaps, for an environment. Slots due until now
-- are never sent: the copy may lack the rows of mails that went out. One that is in service for the
-- environment already is left alone, unless it is forced. $1: environment; $2: actor; $3: why; $4: force.
WITH self AS (
    SELECT oid::text AS identity FROM pg_database WHERE datname = current_database()
), adopted AS (
    INSERT INTO nudged.installation AS i (environment, identity, written_by, not_before)
    SELECT $1::text, identity, pg_current_xact_id()::xid, now() FROM self
    ON CONFLICT (singleton) DO UPDATE
    SET environment = excluded.environment, identity = excluded.identity, written_by = excluded.written_by,
        adopted_at = now(), not_before = now(), planned_with = NULL
    WHERE $4::boolean OR i.environment <> excluded.environment OR i.identity IS DISTINCT FROM excluded.identity
       OR i.written_by <> i.xmin
    RETURNING environment
), noted AS (
    INSERT INTO nudged.events (actor, action, detail, why) SELECT $2::text, 'adopt', environment, $3::text FROM adopted
)
SELECT count(*) FROM adopted;
