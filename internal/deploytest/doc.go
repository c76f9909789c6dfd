// Package deploytest holds the tests of what lies in deploy: the unit of systemd, the image and the
// release script. It has no code of its own. Its tests may import internal/config for the standard
// values, and the test helpers.
//
// Invariants:
//
//  1. What is tested is the file that is shipped: flags, paths and limits are read from it, never
//     repeated here.
//  2. A program runs as it would there: the image's in a root with nothing but what the Dockerfile
//     copies, under the user it names.
//  3. A tool that is missing skips its test on a developer's machine and fails it in CI.
package deploytest
