-- A person keeps an address from being mailed. $1: address in lower case; $2: actor; $3: why.
WITH added AS (
    INSERT INTO nudged.suppressions (address, reason) VALUES ($1::text, $3::text)
    ON CONFLICT (address) DO NOTHING
    RETURNING address
), noted AS (
    INSERT INTO nudged.events (actor, action, address, why) SELECT $2::text, 'suppress', address, $3::text FROM added
)
SELECT count(*) FROM added;
