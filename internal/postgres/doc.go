// Package postgres is the ledger in PostgreSQL: every SQL statement of the daemon, and the Store
// of package scheduler over them.
//
// It may import scheduler, cadence, migrations, pgx, client_golang and idna, and never the mailer.
//
// Invariants:
//
//  1. The primary key of nudged.reminders decides who sends a slot; a claim is an INSERT that did
//     not conflict, or an UPDATE of a deferred row fenced by its previous claim id.
//  2. Hand-off and outcome touch only the row that still carries the claim id, in a state from
//     which the move is legal. Both are safe to repeat after a commit of unknown fate.
//  3. No transaction is open while a mail is composed or delivered.
//  4. Nothing locks a row of requests, links or documents: they may be views.
//  5. What is due is decided by the database's clock, never by this process's.
//  6. No session state is relied on: every statement means the same on any connection. What a pass or a
//     commit sets, for its plans and its time, it sets for its own transaction.
//  7. Accounts take turns while one of them has more due than a pass takes; a list of turns is advice,
//     and taking locks and asks again.
package postgres
