// Package chaos runs replicas of the real daemon against a real PostgreSQL and a mail server that
// both misbehave, under a script drawn from a seed, and judges afterwards by the mail server's own
// record whether every promise held.
//
// Everything but this file has the build tag chaos, so that ordinary test runs pass it over:
//
//	go test -tags chaos ./internal/chaos                                   # 60 s, three replicas
//	go test -tags chaos ./internal/chaos -duration 5m -seed 7 -replicas 5 -v
//	go test -tags chaos ./internal/chaos -daemon-race                      # the daemon built with -race
//
// The seed is printed. It draws what is done to whom, and when; how the processes interleave is
// the machine's doing and is not repeated.
//
// # What happens
//
//   - Replicas are killed with -9, stopped for longer than their lease and continued, and ended by
//     SIGTERM, and started again.
//   - PostgreSQL is restarted, crashed and read-only for a while; its sessions are terminated, and
//     writes of the ledger fail with serialization failures or hang for a moment.
//   - The mail server refuses, greylists, stalls, breaks off and talks nonsense at every stage,
//     before and after it accepted, answers too late, closes idle connections and is away.
//   - The application creates, completes, pauses, resumes, opts out, refreshes, revokes, expires,
//     extends, readdresses and suppresses, preferably what is claimed at that very moment, and
//     begins changes that it takes back.
//
// Then everything heals, and what was due has to come to an end.
//
// # What is judged
//
// Accepted mails are identified by what is in them, not by what the ledger says: the request and
// the link by the upload address, the slot by the date, which is when it was due.
//
//  1. No slot of a link of a request is accepted twice.
//  2. What was accepted is sent or unknown in the ledger, under the same Message-ID and recipient;
//     what is sent there was accepted; nothing else ever was.
//  3. Nothing is handed off for a request that is closed, whatever closed it. See below.
//  4. Every slot that fell due for an open request ends in one final state, without further ado
//     once all is well. A slot is skipped only for a reason that held.
//  5. An outcome is unknown only where something was done that explains it.
//  6. The ledger moves only as its state machine allows, and a claim changes hands only by a claim.
//  7. No more than max mails go out for a link, no two for one request closer than min_gap.
//  8. No address, link, subject or secret is in a log, at level debug.
//  9. A replica ends only by our signals, and by SIGTERM with status 0.
//
// # The rule for closed requests
//
// Each change of the application is known by two instants of the database's clock: begin, read
// before its first statement, and end, read after its COMMIT has returned. A snapshot taken before
// begin cannot see it and one taken after end must. For a hand-off the snapshot lies between h,
// when its transaction began (handed_off_at), and u, read by a trigger at the end of its statement.
// The hand-off is a violation if the request is closed in every version that a snapshot between h
// and u can have seen; there is no allowance beyond that. Pauses and expiries are compared with h,
// which is the statement's own now().
//
// # Planted faults
//
// Each of these tags replaces statements of internal/postgres by faulty ones (sql/faults there),
// and the run must fail:
//
//	go test -tags chaos ./internal/chaos -fault fault_resend     # what is unknown is sent again
//	go test -tags chaos ./internal/chaos -fault fault_recheck    # the hand-off does not look again
//	go test -tags chaos ./internal/chaos -fault fault_conflict   # claims without the primary key
//	go test -tags chaos ./internal/chaos -run Planted -planted   # all three, and passes if they fail
package chaos
