-- The documents of some requests in the application's order. $1: request ids. What a view has nothing for
-- is what the table has by default.
SELECT request_id, coalesce(title::text, ''), coalesce(description::text, ''), coalesce(required::boolean, true),
       coalesce(state::text, 'missing'),
       coalesce(rejection_reason::text, '')
FROM nudged.documents
WHERE request_id = ANY ($1::text[])
ORDER BY request_id, position;
