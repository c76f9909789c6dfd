-- What a view in the place of the application's tables fails for.

-- +goose Up
ALTER TABLE nudged.schedules
    DROP CONSTRAINT schedules_problem,
    ADD CONSTRAINT schedules_problem CHECK (problem IN (
        'unreadable_row', 'unknown_cadence', 'anchor_out_of_range', 'unknown_zone', 'unknown_locale', 'invalid_reply_to'));

-- The builds before this one work on it: they count no problem that they do not know.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION nudged.schema_readers(OUT version bigint, OUT oldest_reader bigint)
    LANGUAGE sql IMMUTABLE
AS $$ SELECT 7::bigint, 3::bigint $$;
-- +goose StatementEnd
