// Package scheduler owns the domain and the one loop: what a request, a reminder and an outcome
// are, the policy that decides what is sent, skipped or tried again, and the pipeline from a
// claim to its recorded outcome.
//
// It imports package cadence and, of the rest, neither a database driver nor a mail library:
// Store and Mailer are its own interfaces.
//
// # The way of one reminder
//
//	pass     take what is due, plan (pure), claim                 COMMIT 1
//	compose  render to bytes; a failure ends here
//	hand off mark as sending if the request is still open         COMMIT 2
//	deliver  one SMTP transaction, one recipient
//	record   the outcome                                          COMMIT 3
//
// One goroutine owns the passes, one composes, one owns commits 2 and 3, Workers of them deliver,
// one renews leases, one probes the relay while the gate is shut. Channels between them are
// bounded; only the settler's window limits how much may be unknown after a crash.
//
// # Invariants
//
//  1. A message goes to a delivery only after a commit said that its row is sending under its
//     claim id, and each such commit leads to at most one delivery.
//  2. An outcome is kept until a commit has recorded it. Only a stopping daemon whose database
//     does not come back drops it, and the lease then makes it unknown.
//  3. At most windowPerWorker × Workers reminders are handed off and not yet recorded.
//  4. Nothing is sent again unless an outcome says for certain that it was not accepted.
//  5. What is due is decided by the database's clock; this process's clock only times out.
//  6. A fault of the relay, a shutdown and a lost lease burn no attempt.
//  7. No transaction is open while a message is composed or delivered.
package scheduler
