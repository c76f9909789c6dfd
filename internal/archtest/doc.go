// Package archtest holds the tests of the repository as a whole: the arrows between its packages,
// what lies at its top, and that its documents tell the truth. It has no code of its own.
//
// Its tests may import any package of the domain for the words that a document repeats, and run
// the built program for what a document shows.
//
// Invariants:
//
//  1. A package is in the table of arrows, with what it may import of ours, or the tests fail.
//  2. What a document shows as the output of a command is what the command prints.
//  3. A link of a document leads to a file that is there.
package archtest
