-- Keeps this transaction's plans to look-ups by index, and lets each be made once a connection. Left
-- to its statistics, PostgreSQL makes other plans while a table is empty, reads it from end to end,
-- and keeps those plans while the table grows. $1: false takes the pin off again, for statements that
-- read views of the application, which may need anything. Local to the transaction: nothing stays
-- behind in a session that a pooler shares. Costs of what is switched off are so high that they would
-- start the compiler, which is never worth it here. $2: milliseconds after which the server gives up a
-- statement, because whoever asked has: it would go on and hold its locks. So would a transaction that waits for
-- the next statement of somebody whose machine is gone, for hours until TCP notices. A database or a role whose commits
-- do not wait for the disk would forget in a crash that a mail was handed off: here they wait.
SELECT set_config('plan_cache_mode', CASE WHEN $1::boolean THEN 'force_generic_plan' ELSE 'auto' END, true),
       set_config('enable_seqscan', (NOT $1::boolean)::text, true),
       set_config('enable_hashjoin', (NOT $1::boolean)::text, true),
       set_config('enable_mergejoin', (NOT $1::boolean)::text, true),
       set_config('jit', 'off', true),
       set_config('statement_timeout', $2::bigint::text, true),
       set_config('idle_in_transaction_session_timeout', $2::bigint::text, true),
       set_config('synchronous_commit', CASE current_setting('synchronous_commit') WHEN 'off' THEN 'on'
                                             ELSE current_setting('synchronous_commit') END, true);
