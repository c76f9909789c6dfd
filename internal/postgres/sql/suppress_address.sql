-- A person keeps an address from being mailed. $1: the address in its spellings, in lower case; $2: actor; $3: why.
WITH added AS (
    INSERT INTO nudged.suppressions (address, reason) SELECT a.address, $3::text FROM unnest($1::text[]) AS a (address)
    ON CONFLICT (address) DO NOTHING
    RETURNING address
), noted AS (
    INSERT INTO nudged.events (actor, action, address, why) SELECT $2::text, 'suppress', address, $3::text FROM added
)
SELECT count(*) FROM added;
