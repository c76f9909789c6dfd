-- What keeps an open request without mail: a view in the place of the application's tables that fails for it, and a
-- link that the ledger was purged of.

-- +goose Up
ALTER TABLE nudged.schedules
    ADD purged_until timestamptz,
    DROP CONSTRAINT schedules_problem,
    ADD CONSTRAINT schedules_problem CHECK (problem IN (
        'unreadable_row', 'purged_link', 'unknown_cadence', 'anchor_out_of_range', 'unknown_zone', 'unknown_locale',
        'invalid_reply_to'));
COMMENT ON COLUMN nudged.schedules.purged_until IS 'created_at of the newest link whose reminders were deleted after the retention. Nobody can tell any more which slots of links up to this one went out, so that no other may.';

-- The builds before this one work on it: they count no problem that they do not know, and their purge notes no link.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION nudged.schema_readers(OUT version bigint, OUT oldest_reader bigint)
    LANGUAGE sql IMMUTABLE
AS $$ SELECT 7::bigint, 3::bigint $$;
-- +goose StatementEnd
