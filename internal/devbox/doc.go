// Package devbox owns what `nudged run --dev` brings along, so that nudged runs on a machine that
// has nothing prepared: a private PostgreSQL, an inbox that keeps every mail, and sample data.
//
// It may import internal/pgserver, pgx and go-smtp.
//
// Invariants:
//
//  1. Nothing leaves the machine: the inbox takes mail for every recipient and forwards none.
//  2. Data is kept: a second start on the same folder finds the first one's requests and ledger,
//     and adds no sample data to them.
//  3. One folder has one box: Start fails while another process has it.
//  4. A mail in the inbox is complete: it gets its name only when all of it is written.
//
// The inbox is a toy on the developer's own machine: it shows recipients and subjects, which
// nudged itself never does.
package devbox
