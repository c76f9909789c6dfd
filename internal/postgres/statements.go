package postgres

import _ "embed" // the statements lie in files of their own

var (
	//go:embed sql/recover.sql
	recoverSQL string
	//go:embed sql/take.sql
	takeSQL string
	//go:embed sql/subjects.sql
	subjectsSQL string
	//go:embed sql/ledger.sql
	ledgerSQL string
	//go:embed sql/documents.sql
	documentsSQL string
	//go:embed sql/insert_rows.sql
	insertRowsSQL string
	//go:embed sql/claim_deferred.sql
	claimDeferredSQL string
	//go:embed sql/end_deferred.sql
	endDeferredSQL string
	//go:embed sql/set_wakes.sql
	setWakesSQL string
	//go:embed sql/forget.sql
	forgetSQL string
	//go:embed sql/settle.sql
	settleSQL string
	//go:embed sql/suppress.sql
	suppressSQL string
	//go:embed sql/hand_off.sql
	handOffSQL string
	//go:embed sql/renew.sql
	renewSQL string
	//go:embed sql/open_requests.sql
	openRequestsSQL string
	//go:embed sql/backlog.sql
	backlogSQL string
	//go:embed sql/replan.sql
	replanSQL string
	//go:embed sql/adopt.sql
	adoptSQL string
)
