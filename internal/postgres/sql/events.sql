-- What people did about one request, its present address and those its mails went to, and the whole
-- database, the oldest first. $1: request. Events without a request are read from end to end: they are
-- as few as the acts of people and the addresses that do not exist.
WITH addresses AS (
    SELECT lower(btrim(recipient_email::text)) AS address FROM nudged.requests WHERE id = $1::text
    UNION
    SELECT lower(btrim(recipient)) FROM nudged.reminders WHERE request_id = $1::text AND recipient IS NOT NULL
)
SELECT created_at, actor, action, link_created_at, coalesce(slot, ''), coalesce(address, ''), coalesce(detail, ''), why
FROM (
    SELECT * FROM nudged.events WHERE request_id = $1::text
    UNION ALL
    SELECT * FROM nudged.events
    WHERE request_id IS NULL AND (action = 'adopt' OR address IN (SELECT address FROM addresses))
) e
ORDER BY id;
