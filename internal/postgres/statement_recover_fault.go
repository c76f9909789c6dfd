//go:build fault_resend

package postgres

import _ "embed" // the statements lie in files of their own

// A planted fault, never part of a release: package chaos has to notice it. A hand-off whose worker
// went away is tried again, as if nothing could have been accepted.
//
//go:embed sql/faults/resend_recover.sql
var recoverSQL string
