// Package pgserver owns private PostgreSQL servers: it finds the binaries, makes the data folder,
// starts the server as a child of this process and stops it.
//
// It may import the standard library and embedded-postgres, and nothing of ours.
//
// Invariants:
//
//  1. A server does not outlive the process that started it. On Linux the kernel sees to that even
//     after kill -9; elsewhere the next Start on its folder finds what was left and stops it.
//  2. One folder has one owner: Start fails with an InUseError while another process holds it.
//  3. A data folder is complete or absent: initdb works beside it and the result is renamed.
//  4. Only this machine can connect: a unix socket in the private folder, and 127.0.0.1.
//  5. The server has its own process group: the Ctrl-C that ends its owner does not end it first.
//  6. As root the server runs under an unprivileged account, since PostgreSQL refuses root.
//  7. A folder that holds anything else is never taken over.
package pgserver
