-- The tables that nudged alone writes. No foreign key leads from or to the application's tables.

-- +goose Up
CREATE TABLE nudged.schedules (
    request_id text PRIMARY KEY,
    wake_at    timestamptz,
    problem    text CONSTRAINT schedules_problem CHECK (problem IN ('unknown_cadence', 'unknown_zone'))
) WITH (
    -- Every planned request moves its row: room on the page, and vacuum before it bloats.
    fillfactor = 70,
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_threshold = 1000
);

-- A poll with nothing due reads one page of this index, whatever the number of requests.
CREATE INDEX schedules_wake ON nudged.schedules (wake_at) WHERE wake_at IS NOT NULL;
CREATE INDEX schedules_problem ON nudged.schedules (problem) WHERE problem IS NOT NULL;

COMMENT ON TABLE nudged.schedules IS 'When nudged next has to look at each request. A cache: losing a row delays, never repeats.';
COMMENT ON COLUMN nudged.schedules.request_id IS 'The request.';
COMMENT ON COLUMN nudged.schedules.wake_at IS 'When to look next; -infinity: at the next pass; NULL: not before something changes.';
COMMENT ON COLUMN nudged.schedules.problem IS 'What is wrong with the request''s row, found when it was last planned.';

CREATE TABLE nudged.reminders (
    request_id      text NOT NULL,
    link_created_at timestamptz NOT NULL,
    slot            text NOT NULL,
    due_at          timestamptz NOT NULL,
    state           text NOT NULL,
    reason          text,
    attempt         integer NOT NULL DEFAULT 0,
    claim_id        uuid,
    claimed_by      text,
    lease_until     timestamptz,
    retry_at        timestamptz,
    retry_since     timestamptz NOT NULL DEFAULT now(),
    unknown_since   timestamptz,
    recipient       text,
    message_id      text,
    smtp_code       integer,
    smtp_reply      text,
    created_at      timestamptz NOT NULL DEFAULT now(),
    handed_off_at   timestamptz,
    finished_at     timestamptz,
    PRIMARY KEY (request_id, link_created_at, slot),

    -- Which columns each state needs and which it must not have.
    CONSTRAINT reminders_state CHECK (
        CASE state
            WHEN 'claimed'  THEN claim_id IS NOT NULL AND claimed_by IS NOT NULL AND lease_until IS NOT NULL
                             AND reason IS NULL AND retry_at IS NULL AND handed_off_at IS NULL AND finished_at IS NULL
            WHEN 'sending'  THEN claim_id IS NOT NULL AND claimed_by IS NOT NULL AND lease_until IS NOT NULL
                             AND handed_off_at IS NOT NULL AND recipient IS NOT NULL AND message_id IS NOT NULL
                             AND reason IS NULL AND retry_at IS NULL AND finished_at IS NULL
            WHEN 'sent'     THEN handed_off_at IS NOT NULL AND finished_at IS NOT NULL
                             AND reason IS NULL AND lease_until IS NULL AND retry_at IS NULL
            WHEN 'deferred' THEN reason IS NOT NULL AND retry_at IS NOT NULL
                             AND lease_until IS NULL AND finished_at IS NULL
            WHEN 'failed'   THEN reason IS NOT NULL AND finished_at IS NOT NULL
                             AND lease_until IS NULL AND retry_at IS NULL
            WHEN 'unknown'  THEN reason IS NOT NULL AND finished_at IS NOT NULL AND handed_off_at IS NOT NULL
                             AND lease_until IS NULL AND retry_at IS NULL
            WHEN 'skipped'  THEN reason IS NOT NULL AND finished_at IS NOT NULL
                             AND lease_until IS NULL AND retry_at IS NULL
            ELSE false
        END),

    -- The closed list of reasons, shared with scheduler.Reason and the metric labels.
    CONSTRAINT reminders_reason CHECK (
        CASE state
            WHEN 'skipped'  THEN reason IN ('superseded', 'missed', 'before_adoption', 'link_expired', 'link_revoked',
                                            'link_replaced', 'request_closed', 'paused', 'opted_out', 'suppressed',
                                            'max_reached', 'not_allowed')
            WHEN 'failed'   THEN reason IN ('recipient_refused', 'message_refused', 'invalid_address',
                                            'template_error', 'retries_exhausted')
            WHEN 'deferred' THEN reason IN ('relay_refused', 'greylisted', 'connection_lost', 'lease_lost',
                                            'shutdown', 'not_sent', 'recipient_changed')
            WHEN 'unknown'  THEN reason IN ('reply_lost', 'worker_lost')
            ELSE reason IS NULL
        END)
) WITH (
    -- A reminder that goes out is written three times (claim, hand-off, outcome): with half a page
    -- free and no changing column in an index, the second write stays on its page (HOT).
    fillfactor = 50,
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_threshold = 1000
);

-- The partial indexes hold only the few rows that are in between. Their predicates name columns
-- that a mail sent at the first attempt changes at most once; `state` is in none of them.
CREATE INDEX reminders_leased ON nudged.reminders (lease_until) WHERE lease_until IS NOT NULL;
CREATE INDEX reminders_deferred ON nudged.reminders (retry_at) WHERE retry_at IS NOT NULL;
CREATE INDEX reminders_unknown ON nudged.reminders (created_at) WHERE reason IN ('reply_lost', 'worker_lost');

-- The last outcomes of attempts, for the status page. Only the write that ends an attempt, which moves
-- the row out of reminders_leased anyway, adds to it; skips, which come in floods, are not in it.
CREATE INDEX reminders_finished ON nudged.reminders (finished_at)
    WHERE finished_at IS NOT NULL
      AND (reason IS NULL OR reason IN ('recipient_refused', 'message_refused', 'invalid_address', 'template_error',
                                        'retries_exhausted', 'reply_lost', 'worker_lost'));

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

CREATE TABLE nudged.suppressions (
    address    text PRIMARY KEY CONSTRAINT suppressions_address CHECK (address = lower(btrim(address))),
    reason     text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now()
);

COMMENT ON TABLE nudged.suppressions IS 'Addresses that must not be mailed.';
COMMENT ON COLUMN nudged.suppressions.address IS 'The address in lower case.';
COMMENT ON COLUMN nudged.suppressions.reason IS 'Why: a person''s words, or the server''s.';
COMMENT ON COLUMN nudged.suppressions.created_at IS 'Since when.';

CREATE TABLE nudged.events (
    id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    created_at      timestamptz NOT NULL DEFAULT now(),
    actor           text NOT NULL,
    action          text NOT NULL
        CONSTRAINT events_action CHECK (action IN ('adopt', 'pause', 'resume', 'resolve', 'suppress', 'unsuppress')),
    request_id      text,
    link_created_at timestamptz,
    slot            text,
    address         text,
    detail          text,
    why             text NOT NULL
);
CREATE INDEX events_request ON nudged.events (request_id) WHERE request_id IS NOT NULL;

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

CREATE TABLE nudged.installation (
    singleton    boolean PRIMARY KEY DEFAULT true CONSTRAINT installation_singleton CHECK (singleton),
    environment  text NOT NULL,
    adopted_at   timestamptz NOT NULL DEFAULT now(),
    not_before   timestamptz,
    identity     text,
    planned_with text
);

COMMENT ON TABLE nudged.installation IS 'One row: which environment this database belongs to, and since when nudged serves it.';
COMMENT ON COLUMN nudged.installation.singleton IS 'Always true: there is one row.';
COMMENT ON COLUMN nudged.installation.environment IS 'The configuration''s environment when it was adopted.';
COMMENT ON COLUMN nudged.installation.adopted_at IS 'Slots due before are not sent, unless within limits.max_lateness.';
COMMENT ON COLUMN nudged.installation.not_before IS 'Set by a person who adopts a restored copy: slots due before are never sent, whatever max_lateness says.';
COMMENT ON COLUMN nudged.installation.identity IS 'The oid of this database when it was adopted; a copy that was restored beside it has another one.';
COMMENT ON COLUMN nudged.installation.planned_with IS 'Fingerprint of the configuration and zone data that the wakes were last planned with.';
