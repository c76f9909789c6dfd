//go:build fault_conflict

package postgres

import _ "embed" // the statements lie in files of their own

// A planted fault, never part of a release: package chaos has to notice it. Passes do not lock what
// they look at, and a claim takes over the row that another one has written meanwhile.
var (
	//go:embed sql/faults/conflict_take.sql
	takeSQL string
	//go:embed sql/faults/conflict_insert_rows.sql
	insertRowsSQL string
)
