-- Replicas that start together, after an upgrade or with a new configuration: one of them plans all
-- open requests anew, and the others find it done.

-- +goose Up
ALTER TABLE nudged.installation ADD planning_until timestamptz;
COMMENT ON COLUMN nudged.installation.planning_until IS 'How long the others leave it to one replica to plan all open requests anew; NULL: none does.';

-- The builds before this one work on it: they let planning_until be.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION nudged.schema_readers(OUT version bigint, OUT oldest_reader bigint)
    LANGUAGE sql IMMUTABLE
AS $$ SELECT 5::bigint, 3::bigint $$;
-- +goose StatementEnd
