// Package mailer turns a claimed reminder into a mail and hands it to an SMTP relay.
//
// It owns three things: composing (templates to bytes), the connections to the relay, and the
// reading of the relay's answers. It implements scheduler.Mailer; it may import scheduler and
// cadence, and never internal/postgres. Opening connections (EHLO, STARTTLS, AUTH) is go-mail's;
// the conversation from MAIL on is spoken here, one command at a time, because only who knows the
// stage knows what an error means. The bytes of a mail are those that go-mail would write, which a
// test holds them to; they are put together here from the encoders of the standard library, in half
// the time and with half the garbage.
//
// Invariants:
//
//  1. Deliver sends at most one final dot. What it sent before the dot cannot have been accepted;
//     after the dot only a readable answer decides, and where none comes the outcome is unknown.
//  2. The message is whole before the first command: no render error can cut a mail short.
//  3. Once a body has begun, the connection either carries it to the final dot or is closed. No
//     command follows an unfinished body, because the next command would end it with a dot.
//  4. A connection belongs to one delivery at a time, and goes back to the pool only when both
//     sides agree where they are: after a 250 to the dot, or after a refusal and, where a
//     transaction was open, an answered RSET. Every doubt closes it.
//  5. A connection from the pool that turns out dead at MAIL is replaced once, at once: the relay
//     may have closed it while it was idle, and nothing was sent yet.
//  6. Each stage has a deadline of its own. Cancelling the context ends a delivery at once before
//     the dot and does nothing after it.
//  7. No content leaves after the instant that the caller gave.
//  8. Equal tasks give equal bytes. Message-ID, Date, boundary and idempotency key are derived
//     from request, link and slot.
//  9. No data can add a header or a recipient.
//  10. What the relay says is kept without e-mail addresses, in one line of 500 bytes at most.
//  11. A mail is in one language as a whole. A template that cannot be used stops no mail of another
//     language, and one that fails when it runs no other mail.
//  12. Values are escaped in HTML, and never in the subject or the text.
//  13. A mail is 1 MiB at most. One that would be larger is not written: template_error.
//
// # What the answers mean
//
// classify.go holds the table; this is what it says. RFC 5321 section 4.2.1 gives the classes.
//
//	stage                 answer                     state     reason             relay's fault
//	connect … AUTH        anything but success       deferred  relay_refused      yes
//	any                   421                        deferred  relay_refused      yes
//	any                   530, 535, 538              deferred  relay_refused      yes
//	MAIL, RCPT, DATA      other 4xx                  deferred  greylisted         no
//	RCPT                  other 5xx                  failed    recipient_refused  no
//	MAIL, DATA            other 5xx                  failed    message_refused    no
//	MAIL … body           silence, loss, nonsense    deferred  connection_lost    no
//	final dot             2xx                        sent
//	final dot             other 4xx                  deferred  greylisted         no
//	final dot             other 5xx                  failed    message_refused    no
//	final dot             silence, loss, nonsense    unknown   reply_lost         no
//
// Decided here, without an answer: what the relay said at EHLO that it cannot take is failed,
// message_refused (SIZE, 8BITMIME) or invalid_address (SMTPUTF8), before anything is sent; an ended
// context is deferred, shutdown; a hand-off that came too late is deferred, lease_lost.
//
// A 5xx with an enhanced code (RFC 3463) that says the address does not exist also asks to
// suppress the address: 5.1.1, 5.1.2, 5.1.3, 5.1.6, 5.1.10 and 5.2.1, from RCPT on. The words of
// the answer are not enough: "550 no such user" alone is what relays also say to spam.
package mailer
