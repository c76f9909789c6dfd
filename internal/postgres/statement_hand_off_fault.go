//go:build fault_recheck

package postgres

import _ "embed" // the statements lie in files of their own

// A planted fault, never part of a release: package chaos has to notice it. The hand-off does not
// look whether the request is still open.
//
//go:embed sql/faults/recheck_hand_off.sql
var handOffSQL string
