//go:build !fault_resend

package postgres

import _ "embed" // the statements lie in files of their own

//go:embed sql/recover.sql
var recoverSQL string
