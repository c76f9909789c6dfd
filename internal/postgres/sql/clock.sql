-- The instant of this pass; whose database this is now, and whether it is still the very one that was adopted:
-- one that was restored under a running daemon is not; and whether the application put a view in the place of
-- one of its tables.
SELECT now(), coalesce(i.environment, ''),
    coalesce(i.identity = (SELECT oid::text FROM pg_database WHERE datname = current_database())
        AND coalesce(i.written_by = i.xmin, true), false),
    EXISTS (
    SELECT 1 FROM pg_class
    WHERE oid IN (to_regclass('nudged.requests'), to_regclass('nudged.links'), to_regclass('nudged.documents'))
      AND relkind <> 'r')
FROM (VALUES (true)) AS here (singleton) LEFT JOIN nudged.installation i USING (singleton);
