//go:build !fault_recheck

package postgres

import _ "embed" // the statements lie in files of their own

//go:embed sql/hand_off.sql
var handOffSQL string
