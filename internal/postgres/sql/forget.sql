-- Drops the schedules of requests that are gone, link and all.
DELETE FROM nudged.schedules WHERE request_id = ANY ($1::text[]);
