CREATE SCHEMA nudged;

COMMENT ON SCHEMA nudged IS 'Document requests and the reminders that nudged sends for them.';

CREATE FUNCTION nudged.installation_updated() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'nudged', 'pg_temp'
    AS $$
BEGIN
    IF OLD.written_by IS NULL OR OLD.written_by = OLD.xmin THEN
        NEW.written_by := pg_current_xact_id()::xid;
    END IF;
    RETURN NEW;
END
$$;

COMMENT ON FUNCTION nudged.installation_updated() IS 'Trigger: note who writes the row.';

CREATE FUNCTION nudged.links_deleted() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'nudged', 'pg_temp'
    AS $$
BEGIN
    INSERT INTO nudged.schedules AS s (request_id, wake_at)
    SELECT o.request_id, '-infinity' FROM old_rows o ORDER BY o.request_id
    ON CONFLICT ON CONSTRAINT schedules_pkey DO UPDATE SET wake_at = '-infinity'
    WHERE s.wake_at IS DISTINCT FROM '-infinity';
    RETURN NULL;
END
$$;

COMMENT ON FUNCTION nudged.links_deleted() IS 'Trigger: look at requests that lost their link.';

CREATE FUNCTION nudged.links_inserted() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'nudged', 'pg_temp'
    AS $$
BEGIN
    INSERT INTO nudged.schedules AS s (request_id, wake_at)
    SELECT n.request_id, '-infinity' FROM new_rows n ORDER BY n.request_id
    ON CONFLICT ON CONSTRAINT schedules_pkey DO UPDATE SET wake_at = '-infinity'
    WHERE s.wake_at IS DISTINCT FROM '-infinity';
    RETURN NULL;
END
$$;

COMMENT ON FUNCTION nudged.links_inserted() IS 'Trigger: look at requests that got a link.';

CREATE FUNCTION nudged.links_updated() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'nudged', 'pg_temp'
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

COMMENT ON FUNCTION nudged.links_updated() IS 'Trigger: look at requests whose link was refreshed, extended, cut short or revoked.';

CREATE FUNCTION nudged.requests_deleted() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'nudged', 'pg_temp'
    AS $$
BEGIN
    INSERT INTO nudged.schedules AS s (request_id, wake_at)
    SELECT o.id, '-infinity' FROM old_rows o ORDER BY o.id
    ON CONFLICT ON CONSTRAINT schedules_pkey DO UPDATE SET wake_at = '-infinity'
    WHERE s.wake_at IS DISTINCT FROM '-infinity';
    RETURN NULL;
END
$$;

COMMENT ON FUNCTION nudged.requests_deleted() IS 'Trigger: look at deleted requests, to close what is open.';

CREATE FUNCTION nudged.requests_inserted() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'nudged', 'pg_temp'
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

COMMENT ON FUNCTION nudged.requests_inserted() IS 'Trigger: look at inserted requests that have a link.';

CREATE FUNCTION nudged.requests_updated() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'nudged', 'pg_temp'
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

COMMENT ON FUNCTION nudged.requests_updated() IS 'Trigger: look at requests whose plan a change concerns.';

CREATE FUNCTION nudged.schema_readers(OUT version bigint, OUT oldest_reader bigint) RETURNS record
    LANGUAGE sql IMMUTABLE
    AS $$ SELECT 7::bigint, 3::bigint $$;

COMMENT ON FUNCTION nudged.schema_readers(OUT version bigint, OUT oldest_reader bigint) IS 'The version of this schema, and the oldest version a build may know to work on it.';

CREATE FUNCTION nudged.touch(request_id text) RETURNS void
    LANGUAGE sql SECURITY DEFINER
    SET search_path TO 'nudged', 'pg_temp'
    AS $_$
    INSERT INTO nudged.schedules AS s (request_id, wake_at)
    VALUES ($1, '-infinity')
    ON CONFLICT ON CONSTRAINT schedules_pkey DO UPDATE SET wake_at = '-infinity'
    WHERE s.wake_at IS DISTINCT FROM '-infinity';
$_$;

COMMENT ON FUNCTION nudged.touch(request_id text) IS 'Look at this request at the next pass. For applications whose requests, links or documents are views: call it from a trigger of your own.';

CREATE TABLE nudged.documents (
    request_id text NOT NULL,
    "position" integer NOT NULL,
    title text NOT NULL,
    description text,
    required boolean DEFAULT true NOT NULL,
    state text DEFAULT 'missing'::text NOT NULL,
    rejection_reason text,
    CONSTRAINT documents_state CHECK ((state = ANY (ARRAY['missing'::text, 'received'::text, 'approved'::text, 'rejected'::text])))
);

COMMENT ON TABLE nudged.documents IS 'What a request asks for. Written by the application.';

COMMENT ON COLUMN nudged.documents.request_id IS 'The request this document belongs to.';

COMMENT ON COLUMN nudged.documents."position" IS 'Order in the mail.';

COMMENT ON COLUMN nudged.documents.title IS 'Name of the document.';

COMMENT ON COLUMN nudged.documents.description IS 'What exactly is wanted, plain text.';

COMMENT ON COLUMN nudged.documents.required IS 'False: welcome, but not needed to complete the request.';

COMMENT ON COLUMN nudged.documents.state IS 'missing and rejected documents are listed in the mail.';

COMMENT ON COLUMN nudged.documents.rejection_reason IS 'Why a rejected document was rejected; shown to the recipient.';

CREATE TABLE nudged.events (
    id bigint NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    actor text NOT NULL,
    action text NOT NULL,
    request_id text,
    link_created_at timestamp with time zone,
    slot text,
    address text,
    detail text,
    why text NOT NULL,
    CONSTRAINT events_action CHECK ((action = ANY (ARRAY['adopt'::text, 'pause'::text, 'resume'::text, 'resolve'::text, 'suppress'::text, 'unsuppress'::text])))
);

COMMENT ON TABLE nudged.events IS 'Who paused, resumed, resolved, suppressed or adopted what, when, and why.';

COMMENT ON COLUMN nudged.events.id IS 'Order of writing.';

COMMENT ON COLUMN nudged.events.created_at IS 'When.';

COMMENT ON COLUMN nudged.events.actor IS 'Who: a person''s login and host, or nudged.';

COMMENT ON COLUMN nudged.events.action IS 'What was done.';

COMMENT ON COLUMN nudged.events.request_id IS 'The request concerned, if one.';

COMMENT ON COLUMN nudged.events.link_created_at IS 'The link concerned, if one.';

COMMENT ON COLUMN nudged.events.slot IS 'The slot concerned, if one.';

COMMENT ON COLUMN nudged.events.address IS 'The address concerned, if one.';

COMMENT ON COLUMN nudged.events.detail IS 'The particulars, such as the outcome a person settled on.';

COMMENT ON COLUMN nudged.events.why IS 'The reason given.';

ALTER TABLE nudged.events ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME nudged.events_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE nudged.installation (
    singleton boolean DEFAULT true NOT NULL,
    environment text NOT NULL,
    adopted_at timestamp with time zone DEFAULT now() NOT NULL,
    not_before timestamp with time zone,
    identity text,
    planned_with text,
    written_by xid,
    CONSTRAINT installation_singleton CHECK (singleton)
);

COMMENT ON TABLE nudged.installation IS 'One row: which environment this database belongs to, and since when nudged serves it.';

COMMENT ON COLUMN nudged.installation.singleton IS 'Always true: there is one row.';

COMMENT ON COLUMN nudged.installation.environment IS 'The configuration''s environment when it was adopted.';

COMMENT ON COLUMN nudged.installation.adopted_at IS 'Slots due before are not sent, unless within limits.max_lateness.';

COMMENT ON COLUMN nudged.installation.not_before IS 'Set by a person who adopts a restored copy: slots due before are never sent, whatever max_lateness says.';

COMMENT ON COLUMN nudged.installation.identity IS 'The oid of this database when it was adopted; a copy that was restored beside it has another one.';

COMMENT ON COLUMN nudged.installation.planned_with IS 'Fingerprint of the configuration and zone data that the wakes were last planned with.';

COMMENT ON COLUMN nudged.installation.written_by IS 'The transaction that last wrote this row. Where it is another one than xmin, the row came out of a dump; NULL: a build wrote it that noted none.';

CREATE TABLE nudged.links (
    request_id text NOT NULL,
    url text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    expires_at timestamp with time zone,
    revoked_at timestamp with time zone
);

COMMENT ON TABLE nudged.links IS 'The single live upload link of a request. A refresh writes a new created_at over the row: a new series of reminders begins and the old one is dead. Written by the application.';

COMMENT ON COLUMN nudged.links.request_id IS 'The request this link belongs to.';

COMMENT ON COLUMN nudged.links.url IS 'The secure upload address, http or https.';

COMMENT ON COLUMN nudged.links.created_at IS 'The anchor: every slot of the series is counted from here.';

COMMENT ON COLUMN nudged.links.expires_at IS 'Nothing is sent at or after this instant; NULL: never expires.';

COMMENT ON COLUMN nudged.links.revoked_at IS 'When the link was withdrawn; nothing is sent for it afterwards.';

CREATE TABLE nudged.reminders (
    request_id text NOT NULL,
    link_created_at timestamp with time zone NOT NULL,
    slot text NOT NULL,
    due_at timestamp with time zone NOT NULL,
    state text NOT NULL,
    reason text,
    attempt integer DEFAULT 0 NOT NULL,
    claim_id uuid,
    claimed_by text,
    lease_until timestamp with time zone,
    retry_at timestamp with time zone,
    retry_since timestamp with time zone DEFAULT now() NOT NULL,
    unknown_since timestamp with time zone,
    recipient text,
    message_id text,
    smtp_code integer,
    smtp_reply text,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    handed_off_at timestamp with time zone,
    finished_at timestamp with time zone,
    CONSTRAINT reminders_reason CHECK (
CASE state
    WHEN 'skipped'::text THEN (reason = ANY (ARRAY['superseded'::text, 'missed'::text, 'before_adoption'::text, 'link_expired'::text, 'link_revoked'::text, 'link_replaced'::text, 'request_closed'::text, 'paused'::text, 'opted_out'::text, 'suppressed'::text, 'max_reached'::text, 'not_allowed'::text]))
    WHEN 'failed'::text THEN (reason = ANY (ARRAY['recipient_refused'::text, 'message_refused'::text, 'invalid_address'::text, 'template_error'::text, 'retries_exhausted'::text]))
    WHEN 'deferred'::text THEN (reason = ANY (ARRAY['relay_refused'::text, 'greylisted'::text, 'connection_lost'::text, 'lease_lost'::text, 'shutdown'::text, 'not_sent'::text, 'recipient_changed'::text]))
    WHEN 'unknown'::text THEN (reason = ANY (ARRAY['reply_lost'::text, 'worker_lost'::text]))
    ELSE (reason IS NULL)
END),
    CONSTRAINT reminders_state CHECK (
CASE state
    WHEN 'claimed'::text THEN ((claim_id IS NOT NULL) AND (claimed_by IS NOT NULL) AND (lease_until IS NOT NULL) AND (reason IS NULL) AND (retry_at IS NULL) AND (handed_off_at IS NULL) AND (finished_at IS NULL))
    WHEN 'sending'::text THEN ((claim_id IS NOT NULL) AND (claimed_by IS NOT NULL) AND (lease_until IS NOT NULL) AND (handed_off_at IS NOT NULL) AND (recipient IS NOT NULL) AND (message_id IS NOT NULL) AND (reason IS NULL) AND (retry_at IS NULL) AND (finished_at IS NULL))
    WHEN 'sent'::text THEN ((handed_off_at IS NOT NULL) AND (finished_at IS NOT NULL) AND (reason IS NULL) AND (lease_until IS NULL) AND (retry_at IS NULL))
    WHEN 'deferred'::text THEN ((reason IS NOT NULL) AND (retry_at IS NOT NULL) AND (lease_until IS NULL) AND (finished_at IS NULL))
    WHEN 'failed'::text THEN ((reason IS NOT NULL) AND (finished_at IS NOT NULL) AND (lease_until IS NULL) AND (retry_at IS NULL))
    WHEN 'unknown'::text THEN ((reason IS NOT NULL) AND (finished_at IS NOT NULL) AND (handed_off_at IS NOT NULL) AND (lease_until IS NULL) AND (retry_at IS NULL))
    WHEN 'skipped'::text THEN ((reason IS NOT NULL) AND (finished_at IS NOT NULL) AND (lease_until IS NULL) AND (retry_at IS NULL))
    ELSE false
END)
)
WITH (fillfactor='50', autovacuum_vacuum_scale_factor='0.02', autovacuum_vacuum_threshold='1000');

COMMENT ON TABLE nudged.reminders IS 'The ledger: one row for each slot of each link of each request that was claimed or skipped. Its primary key is what keeps a slot from being sent twice.';

COMMENT ON COLUMN nudged.reminders.request_id IS 'The request.';

COMMENT ON COLUMN nudged.reminders.link_created_at IS 'links.created_at when the slot was planned: which link this belongs to.';

COMMENT ON COLUMN nudged.reminders.slot IS 'Canonical name of the slot in its cadence, such as 3d.';

COMMENT ON COLUMN nudged.reminders.due_at IS 'When the slot was to be sent.';

COMMENT ON COLUMN nudged.reminders.state IS 'claimed, sending, sent, deferred, failed, unknown or skipped.';

COMMENT ON COLUMN nudged.reminders.reason IS 'Why it is deferred, failed, unknown or skipped; NULL otherwise.';

COMMENT ON COLUMN nudged.reminders.attempt IS 'Attempts burnt so far, the present one included.';

COMMENT ON COLUMN nudged.reminders.claim_id IS 'Fence: only the worker that knows it may move the row on.';

COMMENT ON COLUMN nudged.reminders.claimed_by IS 'Name of the replica that last claimed the row.';

COMMENT ON COLUMN nudged.reminders.lease_until IS 'When another replica may settle the row for its worker.';

COMMENT ON COLUMN nudged.reminders.retry_at IS 'When a deferred reminder is tried again.';

COMMENT ON COLUMN nudged.reminders.retry_since IS 'Where limits.retry_for counts from: the first claim, or the last resolution as not sent.';

COMMENT ON COLUMN nudged.reminders.unknown_since IS 'When the first attempt whose fate is unknown was handed off. A row that has it is repeated only under an idempotency key, and never ends as failed or skipped by itself.';

COMMENT ON COLUMN nudged.reminders.recipient IS 'The address the mail was handed off for.';

COMMENT ON COLUMN nudged.reminders.message_id IS 'Message-ID of the mail, without angle brackets.';

COMMENT ON COLUMN nudged.reminders.smtp_code IS 'Code of the server''s decisive reply; NULL: it gave none.';

COMMENT ON COLUMN nudged.reminders.smtp_reply IS 'The server''s words, or what went wrong before it could speak.';

COMMENT ON COLUMN nudged.reminders.created_at IS 'When the row was written: the first claim or the skip.';

COMMENT ON COLUMN nudged.reminders.handed_off_at IS 'When the last attempt was handed off; content may have left from then on.';

COMMENT ON COLUMN nudged.reminders.finished_at IS 'When the outcome was recorded.';

CREATE TABLE nudged.requests (
    id text NOT NULL,
    account_id text NOT NULL,
    status text NOT NULL,
    recipient_email text NOT NULL,
    recipient_name text,
    title text NOT NULL,
    message text,
    deadline date,
    cadence text,
    time_zone text,
    locale text,
    sender_name text,
    reply_to text,
    paused_until timestamp with time zone,
    pause_reason text,
    opted_out_at timestamp with time zone,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    completed_at timestamp with time zone
);

COMMENT ON TABLE nudged.requests IS 'One ask for documents to one recipient, owned by one account. Written by the application.';

COMMENT ON COLUMN nudged.requests.id IS 'The application''s own id, as text.';

COMMENT ON COLUMN nudged.requests.account_id IS 'The account (tenant) that asks.';

COMMENT ON COLUMN nudged.requests.status IS 'Only pending and pending_resubmission are reminded; every other word means closed.';

COMMENT ON COLUMN nudged.requests.recipient_email IS 'One bare address (addr-spec of RFC 5322).';

COMMENT ON COLUMN nudged.requests.recipient_name IS 'How to greet the recipient.';

COMMENT ON COLUMN nudged.requests.title IS 'What the request is about; becomes part of the subject.';

COMMENT ON COLUMN nudged.requests.message IS 'A personal message of the sender, plain text.';

COMMENT ON COLUMN nudged.requests.deadline IS 'Civil date by which the documents are wanted, in the recipient''s zone.';

COMMENT ON COLUMN nudged.requests.cadence IS 'Name of a cadence of the configuration; NULL: the default one.';

COMMENT ON COLUMN nudged.requests.time_zone IS 'IANA name of the recipient''s zone; NULL: the default zone.';

COMMENT ON COLUMN nudged.requests.locale IS 'BCP 47 tag of the recipient''s language; NULL: the default locale.';

COMMENT ON COLUMN nudged.requests.sender_name IS 'The professional who asks, as the mail names them.';

COMMENT ON COLUMN nudged.requests.reply_to IS 'Where an answer of the recipient goes: one bare address.';

COMMENT ON COLUMN nudged.requests.paused_until IS 'No reminder before this instant; infinity: until resumed.';

COMMENT ON COLUMN nudged.requests.pause_reason IS 'Why it is paused, for people.';

COMMENT ON COLUMN nudged.requests.opted_out_at IS 'When the recipient asked for no more reminders of this request.';

COMMENT ON COLUMN nudged.requests.created_at IS 'When the application wrote the request.';

COMMENT ON COLUMN nudged.requests.updated_at IS 'When the application last changed the request.';

COMMENT ON COLUMN nudged.requests.completed_at IS 'When the request was completed.';

CREATE TABLE nudged.schedules (
    request_id text NOT NULL,
    wake_at timestamp with time zone,
    problem text,
    account_id text,
    planned_by integer,
    purged_until timestamp with time zone,
    CONSTRAINT schedules_problem CHECK ((problem = ANY (ARRAY['unreadable_row'::text, 'purged_link'::text, 'unknown_cadence'::text, 'anchor_out_of_range'::text, 'unknown_zone'::text, 'unknown_locale'::text, 'invalid_reply_to'::text])))
)
WITH (fillfactor='70', autovacuum_vacuum_scale_factor='0.02', autovacuum_vacuum_threshold='1000');

COMMENT ON TABLE nudged.schedules IS 'When nudged next has to look at each request. A cache: losing a row delays, never repeats.';

COMMENT ON COLUMN nudged.schedules.request_id IS 'The request.';

COMMENT ON COLUMN nudged.schedules.wake_at IS 'When to look next; -infinity: at the next pass; NULL: not before something changes.';

COMMENT ON COLUMN nudged.schedules.problem IS 'What is wrong with the request''s row, found when it was last planned.';

COMMENT ON COLUMN nudged.schedules.account_id IS 'The account of the request when it was last planned. Among what is due at once, accounts take turns.';

COMMENT ON COLUMN nudged.schedules.planned_by IS 'Fingerprint of the configuration, zone data and schema that an open request was planned with; NULL: it is not open, or was planned by a build that noted none.';

COMMENT ON COLUMN nudged.schedules.purged_until IS 'created_at of the newest link whose reminders were deleted after the retention. Nobody can tell any more which slots of links up to this one went out, so that no other may.';

CREATE TABLE nudged.schema_migrations (
    id integer NOT NULL,
    version_id bigint NOT NULL,
    is_applied boolean NOT NULL,
    tstamp timestamp without time zone DEFAULT now() NOT NULL
);

COMMENT ON TABLE nudged.schema_migrations IS 'Which migrations this schema has had. Written by nudged migrate.';

COMMENT ON COLUMN nudged.schema_migrations.id IS 'Order of writing.';

COMMENT ON COLUMN nudged.schema_migrations.version_id IS 'Number of the migration; 0: none yet.';

COMMENT ON COLUMN nudged.schema_migrations.is_applied IS 'Always true: there is no way down.';

COMMENT ON COLUMN nudged.schema_migrations.tstamp IS 'When it was applied, in UTC.';

ALTER TABLE nudged.schema_migrations ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME nudged.schema_migrations_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE nudged.suppressions (
    address text NOT NULL,
    reason text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT suppressions_address CHECK ((address = lower(btrim(address))))
);

COMMENT ON TABLE nudged.suppressions IS 'Addresses that must not be mailed.';

COMMENT ON COLUMN nudged.suppressions.address IS 'The address in lower case.';

COMMENT ON COLUMN nudged.suppressions.reason IS 'Why: a person''s words, or the server''s.';

COMMENT ON COLUMN nudged.suppressions.created_at IS 'Since when.';

ALTER TABLE ONLY nudged.documents
    ADD CONSTRAINT documents_pkey PRIMARY KEY (request_id, "position");

ALTER TABLE ONLY nudged.events
    ADD CONSTRAINT events_pkey PRIMARY KEY (id);

ALTER TABLE ONLY nudged.installation
    ADD CONSTRAINT installation_pkey PRIMARY KEY (singleton);

ALTER TABLE ONLY nudged.links
    ADD CONSTRAINT links_pkey PRIMARY KEY (request_id);

ALTER TABLE ONLY nudged.reminders
    ADD CONSTRAINT reminders_pkey PRIMARY KEY (request_id, link_created_at, slot);

ALTER TABLE ONLY nudged.requests
    ADD CONSTRAINT requests_pkey PRIMARY KEY (id);

ALTER TABLE ONLY nudged.schedules
    ADD CONSTRAINT schedules_pkey PRIMARY KEY (request_id);

ALTER TABLE ONLY nudged.schema_migrations
    ADD CONSTRAINT schema_migrations_pkey PRIMARY KEY (id);

ALTER TABLE ONLY nudged.suppressions
    ADD CONSTRAINT suppressions_pkey PRIMARY KEY (address);

CREATE INDEX events_request ON nudged.events USING btree (request_id) WHERE (request_id IS NOT NULL);

CREATE INDEX reminders_deferred ON nudged.reminders USING btree (retry_at) WHERE (retry_at IS NOT NULL);

CREATE INDEX reminders_finished ON nudged.reminders USING btree (finished_at) WHERE ((finished_at IS NOT NULL) AND ((reason IS NULL) OR (reason = ANY (ARRAY['recipient_refused'::text, 'message_refused'::text, 'invalid_address'::text, 'template_error'::text, 'retries_exhausted'::text, 'reply_lost'::text, 'worker_lost'::text]))));

CREATE INDEX reminders_leased ON nudged.reminders USING btree (lease_until) WHERE (lease_until IS NOT NULL);

CREATE INDEX reminders_unknown ON nudged.reminders USING btree (created_at) WHERE (reason = ANY (ARRAY['reply_lost'::text, 'worker_lost'::text]));

CREATE INDEX requests_open ON nudged.requests USING btree (status) WHERE (status = ANY (ARRAY['pending'::text, 'pending_resubmission'::text]));

CREATE INDEX schedules_planned_by ON nudged.schedules USING btree (planned_by) WHERE ((wake_at IS DISTINCT FROM '-infinity'::timestamp with time zone) AND ((wake_at IS NOT NULL) OR (planned_by IS NOT NULL)));

CREATE INDEX schedules_problem ON nudged.schedules USING btree (problem) WHERE (problem IS NOT NULL);

CREATE INDEX schedules_wake ON nudged.schedules USING btree (wake_at) WHERE (wake_at IS NOT NULL);

CREATE TRIGGER nudged_delete AFTER DELETE ON nudged.links REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION nudged.links_deleted();

CREATE TRIGGER nudged_delete AFTER DELETE ON nudged.requests REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION nudged.requests_deleted();

CREATE TRIGGER nudged_insert AFTER INSERT ON nudged.links REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION nudged.links_inserted();

CREATE TRIGGER nudged_insert AFTER INSERT ON nudged.requests REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION nudged.requests_inserted();

CREATE TRIGGER nudged_update BEFORE UPDATE ON nudged.installation FOR EACH ROW EXECUTE FUNCTION nudged.installation_updated();

CREATE TRIGGER nudged_update AFTER UPDATE ON nudged.links REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION nudged.links_updated();

CREATE TRIGGER nudged_update AFTER UPDATE ON nudged.requests REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION nudged.requests_updated();
