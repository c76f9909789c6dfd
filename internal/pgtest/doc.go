// Package pgtest gives tests a real PostgreSQL: one server for a package's tests, and a fresh
// database for each test.
//
// A package that uses it begins its tests with
//
//	func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }
//
// It may import internal/pgserver, migrations, pgx and goleak.
//
// Invariants:
//
//  1. The server starts with the first test that asks, so that a run without one costs nothing.
//  2. A database belongs to one test and goes with it, whoever is still connected.
//  3. Nothing is left: server and folder go when the test binary ends, also by a panic or kill -9.
//  4. A machine without PostgreSQL fails the tests in one line; it does not skip them.
package pgtest
