//go:build !fault_conflict

package postgres

import _ "embed" // the statements lie in files of their own

var (
	//go:embed sql/take.sql
	takeSQL string
	//go:embed sql/insert_rows.sql
	insertRowsSQL string
)
