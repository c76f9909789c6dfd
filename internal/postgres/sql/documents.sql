-- The documents of some requests in the application's order. $1: request ids.
SELECT request_id, title::text, coalesce(description::text, ''), required, state::text,
       coalesce(rejection_reason::text, '')
FROM nudged.documents
WHERE request_id = ANY ($1::text[])
ORDER BY request_id, position;
