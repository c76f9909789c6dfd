-- Whose a request is, so that one account's backlog does not stand in front of everybody; and what
-- else can be wrong with a row.

-- +goose Up
ALTER TABLE nudged.schedules
    ADD account_id text,
    DROP CONSTRAINT schedules_problem,
    ADD CONSTRAINT schedules_problem CHECK (problem IN (
        'unknown_cadence', 'anchor_out_of_range', 'unknown_zone', 'unknown_locale', 'invalid_reply_to'));
COMMENT ON COLUMN nudged.schedules.account_id IS 'The account of the request when it was last planned. Among what is due at once, accounts take turns.';

-- A changed locale or reply_to may end a problem, or begin one.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION nudged.requests_updated() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = nudged, pg_temp
AS $$
BEGIN
    INSERT INTO nudged.schedules AS s (request_id, wake_at)
    SELECT n.id, '-infinity'
    FROM new_rows n LEFT JOIN old_rows o ON o.id = n.id
    WHERE o.id IS NULL
       OR (o.status, o.recipient_email, o.deadline, o.cadence, o.time_zone, o.locale, o.reply_to,
           o.paused_until, o.opted_out_at)
          IS DISTINCT FROM
          (n.status, n.recipient_email, n.deadline, n.cadence, n.time_zone, n.locale, n.reply_to,
           n.paused_until, n.opted_out_at)
    ORDER BY n.id
    ON CONFLICT ON CONSTRAINT schedules_pkey DO UPDATE SET wake_at = '-infinity'
    WHERE s.wake_at IS DISTINCT FROM '-infinity';
    RETURN NULL;
END
$$;
-- +goose StatementEnd


-- The build before this one works on it: it lets account_id be.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION nudged.schema_readers(OUT version bigint, OUT oldest_reader bigint)
    LANGUAGE sql IMMUTABLE
AS $$ SELECT 4::bigint, 3::bigint $$;
-- +goose StatementEnd
