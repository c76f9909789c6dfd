-- Remembers addresses that the recipient's server says do not exist. $1: addresses; $2: its words.
WITH added AS (
    INSERT INTO nudged.suppressions (address, reason)
    SELECT DISTINCT ON (lower(btrim(a.address))) lower(btrim(a.address)), a.reason
    FROM unnest($1::text[], $2::text[]) AS a (address, reason)
    ORDER BY lower(btrim(a.address))
    ON CONFLICT (address) DO NOTHING
    RETURNING address, reason
)
INSERT INTO nudged.events (actor, action, address, why)
SELECT 'nudged', 'suppress', address, reason FROM added;
