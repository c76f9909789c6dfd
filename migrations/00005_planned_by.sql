-- What each wake was computed by, so that after a change of configuration exactly those are computed
-- anew that need it, whichever replica computed them and whenever it did.

-- +goose Up
ALTER TABLE nudged.schedules ADD planned_by integer;
COMMENT ON COLUMN nudged.schedules.planned_by IS 'Fingerprint of the configuration, zone data and schema that an open request was planned with; NULL: it is not open, or was planned by a build that noted none.';

-- To find those of another fingerprint, of which there are hardly ever any. An open request may have no
-- wake, by a cadence that is over or unknown, and get one by another configuration; one that is closed
-- has neither wake nor fingerprint, and is not in here.
CREATE INDEX schedules_planned_by ON nudged.schedules (planned_by)
    WHERE wake_at IS DISTINCT FROM '-infinity' AND (wake_at IS NOT NULL OR planned_by IS NOT NULL);

UPDATE nudged.schedules SET wake_at = '-infinity'
WHERE wake_at IS NULL
  AND request_id IN (SELECT id FROM nudged.requests WHERE status IN ('pending', 'pending_resubmission'));

-- The builds before this one work on it, and let planned_by be: what they plan is not told from the rest.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION nudged.schema_readers(OUT version bigint, OUT oldest_reader bigint)
    LANGUAGE sql IMMUTABLE
AS $$ SELECT 5::bigint, 3::bigint $$;
-- +goose StatementEnd
