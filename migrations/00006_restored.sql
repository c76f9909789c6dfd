-- Whether the rows are those that nudged wrote, or came out of a dump. A dump that is restored into the same
-- database, or into one of another server, keeps the oid that identity compares: the first database of each
-- server has the same one. Who wrote a row it cannot keep.

-- +goose Up
ALTER TABLE nudged.installation ADD written_by xid;
COMMENT ON COLUMN nudged.installation.written_by IS 'The transaction that last wrote this row. Where it is another one than xmin, the row came out of a dump; NULL: a build wrote it that noted none.';
UPDATE nudged.installation SET written_by = pg_current_xact_id()::xid;

-- For every program that changes the row, older builds included. A row that came out of a dump stays one.
-- +goose StatementBegin
CREATE FUNCTION nudged.installation_updated() RETURNS trigger
    LANGUAGE plpgsql SET search_path = nudged, pg_temp
AS $$
BEGIN
    IF OLD.written_by IS NULL OR OLD.written_by = OLD.xmin THEN
        NEW.written_by := pg_current_xact_id()::xid;
    END IF;
    RETURN NEW;
END
$$;
-- +goose StatementEnd
COMMENT ON FUNCTION nudged.installation_updated() IS 'Trigger: note who writes the row.';

CREATE TRIGGER nudged_update BEFORE UPDATE ON nudged.installation
    FOR EACH ROW EXECUTE FUNCTION nudged.installation_updated();

-- The builds before this one work on it, and compare the oid alone.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION nudged.schema_readers(OUT version bigint, OUT oldest_reader bigint)
    LANGUAGE sql IMMUTABLE
AS $$ SELECT 6::bigint, 3::bigint $$;
-- +goose StatementEnd
