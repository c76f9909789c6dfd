// Package smtptest is an SMTP server on loopback that tells the truth and can fail at every verb.
//
// It owns the other end of the wire in tests: a scripted server (RFC 5321, with PIPELINING,
// 8BITMIME, SMTPUTF8, SIZE, ENHANCEDSTATUSCODES, STARTTLS, implicit TLS, AUTH PLAIN and LOGIN)
// and a record of what really happened. It imports no package of ours.
//
// A [Script] is asked before every answer and may replace it by an [Action]: other words, other
// bytes, silence, an end of the connection (FIN or RST), all of them after a wait. What a script
// does not care about is answered as a healthy server would.
//
// Invariants:
//
//  1. A message is in Accepted if and only if the server committed to it. The commitment is
//     recorded before the first byte of the answer to the final dot leaves.
//  2. Every body seen is in Bodies with its fate, also those cut off before the final dot.
//  3. Waiting is done on the record, by condition and context, never by the clock.
//  4. After Close no goroutine and no socket of the server is left.
package smtptest
