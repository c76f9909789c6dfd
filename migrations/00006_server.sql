-- On which server a database was adopted. A dump that is restored on another server often gets the oid that
-- the database had on the first: both are the first that was made there.

-- +goose Up
-- NULL where the role may not ask: then the oid alone has to do.
-- +goose StatementBegin
CREATE FUNCTION nudged.server_identity() RETURNS text
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    RETURN (SELECT system_identifier::text FROM pg_control_system());
EXCEPTION WHEN insufficient_privilege THEN
    RETURN NULL;
END
$$;
-- +goose StatementEnd
COMMENT ON FUNCTION nudged.server_identity() IS 'What tells this server from every other one that was set up; its standbys have the same.';

ALTER TABLE nudged.installation ADD server text;
COMMENT ON COLUMN nudged.installation.server IS 'server_identity() when it was adopted; NULL: it was not known, and is not compared.';
UPDATE nudged.installation SET server = nudged.server_identity();

-- The builds before this one work on it, and compare the oid alone.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION nudged.schema_readers(OUT version bigint, OUT oldest_reader bigint)
    LANGUAGE sql IMMUTABLE
AS $$ SELECT 6::bigint, 3::bigint $$;
-- +goose StatementEnd
