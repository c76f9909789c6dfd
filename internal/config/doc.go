// Package config owns the configuration file: reading YAML, checking every value of it, and the
// validated values that the rest of the program is built from. It imports cadence and no other
// package of this module; it knows nothing of databases, mail servers or flags.
//
// Invariants:
//
//  1. A *Config that Load, Parse or Default returned is valid: no other package checks a setting
//     again. What only some commands need (a database, a relay) is asked for when it is loaded, and
//     what only another package can tell (a URL, a language) by the Checks that come with it.
//  2. One run reports every mistake, each on one line that names file, line, key and value. Nothing
//     that a user writes into a file leads to a panic or a multi-line message.
//  3. An unknown key, a key given twice, an anchor, alias, tag or merge key is a mistake.
//  4. Only regular files are read, links followed, and no more of them than fits: a pipe, a device or
//     a log named by mistake neither holds a command up nor fills its memory.
//  5. A secret is read from a file when the configuration is loaded and does not print: not in a
//     mistake, not with any verb of fmt, not in a log, not as JSON. No mistake repeats the value of an
//     unknown key, or a piece of a text that is no YAML.
//  6. The file is read in one walk: a key that no decoder asked for is unknown, so the schema is
//     written down once, in schema.go.
package config
