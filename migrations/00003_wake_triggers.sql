-- What makes nudged look at a request: statement-level triggers on the application's tables that
-- set wake_at to -infinity, once a statement however many rows it writes.
--
-- The functions run as their owner, so that the application needs no right on nudged's tables.

-- +goose Up
-- +goose StatementBegin
CREATE FUNCTION nudged.touch(request_id text) RETURNS void
    LANGUAGE sql SECURITY DEFINER SET search_path = nudged, pg_temp
AS $$
    INSERT INTO nudged.schedules AS s (request_id, wake_at)
    VALUES ($1, '-infinity')
    ON CONFLICT ON CONSTRAINT schedules_pkey DO UPDATE SET wake_at = '-infinity'
    WHERE s.wake_at IS DISTINCT FROM '-infinity';
$$;
-- +goose StatementEnd
COMMENT ON FUNCTION nudged.touch(text) IS 'Look at this request at the next pass. For applications whose requests, links or documents are views: call it from a trigger of your own.';

-- A request that has no link yet waits for the link's own trigger: a bulk import of requests
-- costs no row of schedules.
-- +goose StatementBegin
CREATE FUNCTION nudged.requests_inserted() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = nudged, pg_temp
AS $$
BEGIN
    INSERT INTO nudged.schedules AS s (request_id, wake_at)
    SELECT n.id, '-infinity'
    FROM new_rows n
    WHERE EXISTS (SELECT 1 FROM nudged.links l WHERE l.request_id = n.id)
    ORDER BY n.id
    ON CONFLICT ON CONSTRAINT schedules_pkey DO UPDATE SET wake_at = '-infinity'
    WHERE s.wake_at IS DISTINCT FROM '-infinity';
    RETURN NULL;
END
$$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION nudged.requests_updated() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = nudged, pg_temp
AS $$
BEGIN
    INSERT INTO nudged.schedules AS s (request_id, wake_at)
    SELECT n.id, '-infinity'
    FROM new_rows n LEFT JOIN old_rows o ON o.id = n.id
    WHERE o.id IS NULL
       OR (o.status, o.recipient_email, o.deadline, o.cadence, o.time_zone, o.paused_until, o.opted_out_at)
          IS DISTINCT FROM
          (n.status, n.recipient_email, n.deadline, n.cadence, n.time_zone, n.paused_until, n.opted_out_at)
    ORDER BY n.id
    ON CONFLICT ON CONSTRAINT schedules_pkey DO UPDATE SET wake_at = '-infinity'
    WHERE s.wake_at IS DISTINCT FROM '-infinity';
    RETURN NULL;
END
$$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION nudged.requests_deleted() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = nudged, pg_temp
AS $$
BEGIN
    INSERT INTO nudged.schedules AS s (request_id, wake_at)
    SELECT o.id, '-infinity' FROM old_rows o ORDER BY o.id
    ON CONFLICT ON CONSTRAINT schedules_pkey DO UPDATE SET wake_at = '-infinity'
    WHERE s.wake_at IS DISTINCT FROM '-infinity';
    RETURN NULL;
END
$$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION nudged.links_inserted() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = nudged, pg_temp
AS $$
BEGIN
    INSERT INTO nudged.schedules AS s (request_id, wake_at)
    SELECT n.request_id, '-infinity' FROM new_rows n ORDER BY n.request_id
    ON CONFLICT ON CONSTRAINT schedules_pkey DO UPDATE SET wake_at = '-infinity'
    WHERE s.wake_at IS DISTINCT FROM '-infinity';
    RETURN NULL;
END
$$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION nudged.links_updated() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = nudged, pg_temp
AS $$
BEGIN
    INSERT INTO nudged.schedules AS s (request_id, wake_at)
    SELECT n.request_id, '-infinity'
    FROM new_rows n LEFT JOIN old_rows o ON o.request_id = n.request_id
    WHERE o.request_id IS NULL
       OR (o.created_at, o.expires_at, o.revoked_at) IS DISTINCT FROM (n.created_at, n.expires_at, n.revoked_at)
    ORDER BY n.request_id
    ON CONFLICT ON CONSTRAINT schedules_pkey DO UPDATE SET wake_at = '-infinity'
    WHERE s.wake_at IS DISTINCT FROM '-infinity';
    RETURN NULL;
END
$$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION nudged.links_deleted() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = nudged, pg_temp
AS $$
BEGIN
    INSERT INTO nudged.schedules AS s (request_id, wake_at)
    SELECT o.request_id, '-infinity' FROM old_rows o ORDER BY o.request_id
    ON CONFLICT ON CONSTRAINT schedules_pkey DO UPDATE SET wake_at = '-infinity'
    WHERE s.wake_at IS DISTINCT FROM '-infinity';
    RETURN NULL;
END
$$;
-- +goose StatementEnd

COMMENT ON FUNCTION nudged.requests_inserted() IS 'Trigger: look at inserted requests that have a link.';
COMMENT ON FUNCTION nudged.requests_updated() IS 'Trigger: look at requests whose plan a change concerns.';
COMMENT ON FUNCTION nudged.requests_deleted() IS 'Trigger: look at deleted requests, to close what is open.';
COMMENT ON FUNCTION nudged.links_inserted() IS 'Trigger: look at requests that got a link.';
COMMENT ON FUNCTION nudged.links_updated() IS 'Trigger: look at requests whose link was refreshed, extended, cut short or revoked.';
COMMENT ON FUNCTION nudged.links_deleted() IS 'Trigger: look at requests that lost their link.';

CREATE TRIGGER nudged_insert AFTER INSERT ON nudged.requests
    REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION nudged.requests_inserted();
CREATE TRIGGER nudged_update AFTER UPDATE ON nudged.requests
    REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION nudged.requests_updated();
CREATE TRIGGER nudged_delete AFTER DELETE ON nudged.requests
    REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION nudged.requests_deleted();
CREATE TRIGGER nudged_insert AFTER INSERT ON nudged.links
    REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION nudged.links_inserted();
CREATE TRIGGER nudged_update AFTER UPDATE ON nudged.links
    REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION nudged.links_updated();
CREATE TRIGGER nudged_delete AFTER DELETE ON nudged.links
    REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION nudged.links_deleted();

-- Which older builds may work on this schema. A build that knows schema version N runs on a newer
-- one if that one says so for itself: each migration replaces this function.
-- +goose StatementBegin
CREATE FUNCTION nudged.schema_readers(OUT version bigint, OUT oldest_reader bigint)
    LANGUAGE sql IMMUTABLE
AS $$ SELECT 3::bigint, 3::bigint $$;
-- +goose StatementEnd
COMMENT ON FUNCTION nudged.schema_readers() IS 'The version of this schema, and the oldest version a build may know to work on it.';
