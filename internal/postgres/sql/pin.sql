-- Keeps this transaction's plans to look-ups by index, and lets each be made once a connection. Left
-- to its statistics, PostgreSQL makes other plans while a table is empty, reads it from end to end,
-- and keeps those plans while the table grows. Local to the transaction: nothing stays behind in a
-- session that a pooler shares. Costs of what is switched off are so high that they would start the
-- compiler; it is never worth it here.
SELECT set_config('plan_cache_mode', 'force_generic_plan', true),
       set_config('enable_seqscan', 'off', true),
       set_config('enable_hashjoin', 'off', true),
       set_config('enable_mergejoin', 'off', true),
       set_config('jit', 'off', true);
