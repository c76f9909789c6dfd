-- A person lets an address be mailed again. $1: the address in its spellings, in lower case; $2: actor; $3: why.
WITH dropped AS (
    DELETE FROM nudged.suppressions WHERE address = ANY ($1::text[]) RETURNING address
), noted AS (
    INSERT INTO nudged.events (actor, action, address, why) SELECT $2::text, 'unsuppress', address, $3::text FROM dropped
)
SELECT count(*) FROM dropped;
