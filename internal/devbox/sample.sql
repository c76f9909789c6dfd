-- The sample data of the dev box: one request for each thing that can be seen within a minute.
-- The default cadence has its first slot three days after the link was created; with the zone UTC
-- those are three times 24 hours. Slots long past when nudged first sees them are not sent, so
-- what is to be due now has become due minutes ago.

INSERT INTO nudged.requests
    (id, account_id, status, recipient_email, recipient_name, title, message, deadline, time_zone,
     sender_name, reply_to, created_at, updated_at, completed_at)
SELECT id, 'sample-account', status, email, name, title, message, deadline, 'UTC',
       sender, reply_to, now() - interval '73 hours', now() - interval '73 hours', completed_at
FROM (VALUES
    ('sample-due-1', 'pending', 'ada@client.example', 'Ada',
     'Tax return 2025', 'I can start as soon as these are here.', current_date + 14,
     'Grace of Ledger & Co', 'grace@ledger.example', NULL),
    ('sample-due-2', 'pending', 'bela@client.example', 'Béla',
     'Mortgage application', NULL, NULL,
     'Grace of Ledger & Co', 'grace@ledger.example', NULL),
    ('sample-soon', 'pending', 'chen@client.example', 'Chen',
     'Annual accounts', NULL, current_date + 30,
     'Henri of Ledger & Co', 'henri@ledger.example', NULL),
    ('sample-completed', 'completed', 'dora@client.example', 'Dora',
     'New employee', NULL, NULL,
     'Henri of Ledger & Co', 'henri@ledger.example', now() - interval '1 day'),
    ('sample-expired', 'pending', 'emil@client.example', 'Emil',
     'Insurance claim', NULL, NULL,
     'Grace of Ledger & Co', 'grace@ledger.example', NULL),
    ('sample-rejected', 'pending_resubmission', 'fatima@client.example', 'Fatima',
     'Rental contract', NULL, current_date + 7,
     'Henri of Ledger & Co', 'henri@ledger.example', NULL)
) AS sample (id, status, email, name, title, message, deadline, sender, reply_to, completed_at);

INSERT INTO nudged.documents (request_id, position, title, description, required, state, rejection_reason)
VALUES
    ('sample-due-1', 1, 'Salary statements', 'All twelve months of 2025.', true, 'missing', NULL),
    ('sample-due-1', 2, 'Bank statement', 'As of 31 December 2025.', true, 'received', NULL),
    ('sample-due-1', 3, 'Donation receipts', NULL, false, 'missing', NULL),
    ('sample-due-2', 1, 'Proof of income', 'The last three months.', true, 'missing', NULL),
    ('sample-due-2', 2, 'Identity card', 'Both sides.', true, 'missing', NULL),
    ('sample-soon', 1, 'Invoices of the fourth quarter', NULL, true, 'missing', NULL),
    ('sample-completed', 1, 'Signed contract', NULL, true, 'approved', NULL),
    ('sample-completed', 2, 'Social security number', NULL, true, 'approved', NULL),
    ('sample-expired', 1, 'Photographs of the damage', NULL, true, 'missing', NULL),
    ('sample-rejected', 1, 'Identity card', 'Both sides.', true, 'rejected', 'The back is missing.'),
    ('sample-rejected', 2, 'Proof of address', 'Not older than three months.', true, 'approved', NULL);

INSERT INTO nudged.links (request_id, url, created_at, expires_at)
SELECT id, 'https://uploads.ledger.example/' || id, now() - age, now() + expires_in
FROM (VALUES
    ('sample-due-1',     interval '72 hours 5 minutes',    interval '30 days'),
    ('sample-due-2',     interval '72 hours 3 minutes',    interval '30 days'),
    ('sample-soon',      interval '72 hours -10 seconds',  interval '30 days'),
    ('sample-completed', interval '72 hours 4 minutes',    interval '30 days'),
    ('sample-expired',   interval '72 hours 5 minutes',    interval '-1 hour'),
    ('sample-rejected',  interval '72 hours 2 minutes',    interval '30 days')
) AS sample (id, age, expires_in);
