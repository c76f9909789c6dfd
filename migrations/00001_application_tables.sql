-- The tables that the application writes: requests, links, documents.
--
-- Nothing else in this schema references them by foreign key or locks their rows, so each of
-- them can be replaced by a view with the same columns over tables that already exist.

-- +goose Up
CREATE TABLE nudged.requests (
    id              text PRIMARY KEY,
    account_id      text NOT NULL,
    status          text NOT NULL,
    recipient_email text NOT NULL,
    recipient_name  text,
    title           text NOT NULL,
    message         text,
    deadline        date,
    cadence         text,
    time_zone       text,
    locale          text,
    sender_name     text,
    reply_to        text,
    paused_until    timestamptz,
    pause_reason    text,
    opted_out_at    timestamptz,
    created_at      timestamptz NOT NULL DEFAULT now(),
    updated_at      timestamptz NOT NULL DEFAULT now(),
    completed_at    timestamptz
);

-- Counting open requests for the gauges reads this index and no table row.
CREATE INDEX requests_open ON nudged.requests (status)
    WHERE status IN ('pending', 'pending_resubmission');

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

CREATE TABLE nudged.links (
    request_id text PRIMARY KEY,
    url        text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz,
    revoked_at timestamptz
);

COMMENT ON TABLE nudged.links IS 'The single live upload link of a request. A refresh writes a new created_at over the row: a new series of reminders begins and the old one is dead. Written by the application.';
COMMENT ON COLUMN nudged.links.request_id IS 'The request this link belongs to.';
COMMENT ON COLUMN nudged.links.url IS 'The secure upload address, http or https.';
COMMENT ON COLUMN nudged.links.created_at IS 'The anchor: every slot of the series is counted from here.';
COMMENT ON COLUMN nudged.links.expires_at IS 'Nothing is sent at or after this instant; NULL: never expires.';
COMMENT ON COLUMN nudged.links.revoked_at IS 'When the link was withdrawn; nothing is sent for it afterwards.';

CREATE TABLE nudged.documents (
    request_id       text NOT NULL,
    position         integer NOT NULL,
    title            text NOT NULL,
    description      text,
    required         boolean NOT NULL DEFAULT true,
    state            text NOT NULL DEFAULT 'missing'
        CONSTRAINT documents_state CHECK (state IN ('missing', 'received', 'approved', 'rejected')),
    rejection_reason text,
    PRIMARY KEY (request_id, position)
);

COMMENT ON TABLE nudged.documents IS 'What a request asks for. Written by the application.';
COMMENT ON COLUMN nudged.documents.request_id IS 'The request this document belongs to.';
COMMENT ON COLUMN nudged.documents.position IS 'Order in the mail.';
COMMENT ON COLUMN nudged.documents.title IS 'Name of the document.';
COMMENT ON COLUMN nudged.documents.description IS 'What exactly is wanted, plain text.';
COMMENT ON COLUMN nudged.documents.required IS 'False: welcome, but not needed to complete the request.';
COMMENT ON COLUMN nudged.documents.state IS 'missing and rejected documents are listed in the mail.';
COMMENT ON COLUMN nudged.documents.rejection_reason IS 'Why a rejected document was rejected; shown to the recipient.';

COMMENT ON TABLE nudged.schema_migrations IS 'Which migrations this schema has had. Written by nudged migrate.';
COMMENT ON COLUMN nudged.schema_migrations.id IS 'Order of writing.';
COMMENT ON COLUMN nudged.schema_migrations.version_id IS 'Number of the migration; 0: none yet.';
COMMENT ON COLUMN nudged.schema_migrations.is_applied IS 'Always true: there is no way down.';
COMMENT ON COLUMN nudged.schema_migrations.tstamp IS 'When it was applied, in UTC.';
