package postgres_test

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// node is one step of a plan.
type node struct {
	Type     string `json:"Node Type"`
	Relation string `json:"Relation Name"`
	Hit      int    `json:"Shared Hit Blocks"`
	Read     int    `json:"Shared Read Blocks"`
	Plans    []node `json:"Plans"`
}

// readsAll lists the relations that a plan reads from end to end.
func (n node) readsAll() []string {
	var relations []string
	if n.Type == "Seq Scan" {
		relations = append(relations, n.Relation)
	}
	for _, child := range n.Plans {
		relations = append(relations, child.readsAll()...)
	}
	return relations
}

// explainer asks for plans on a connection of its own, because they hang on the session's settings.
type explainer struct {
	t    testing.TB
	conn *pgx.Conn
}

func newExplainer(t testing.TB, url string) *explainer {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(t.Context()) })
	return &explainer{t, conn}
}

func (e *explainer) exec(sql string, args ...any) {
	e.t.Helper()
	if _, err := e.conn.Exec(e.t.Context(), sql, args...); err != nil {
		e.t.Fatalf("%s: %v", sql, err)
	}
}

// custom is the plan that PostgreSQL makes for these arguments.
func (e *explainer) custom(sql string, args ...any) node {
	e.t.Helper()
	return e.explain(`EXPLAIN (FORMAT JSON) `+sql, args...)
}

// generic is the plan that PostgreSQL makes for any arguments.
func (e *explainer) generic(sql string, args int) node {
	e.t.Helper()
	e.exec(`SET plan_cache_mode = force_generic_plan`)
	defer e.exec(`RESET plan_cache_mode`)
	e.exec(`PREPARE statement AS ` + sql)
	defer e.exec(`DEALLOCATE statement`)
	values := ""
	if args > 0 {
		values = `(` + strings.Join(slices.Repeat([]string{"NULL"}, args), ", ") + `)`
	}
	return e.explain(`EXPLAIN (FORMAT JSON) EXECUTE statement` + values)
}

// buffers runs a statement and returns how many pages it touched.
func (e *explainer) buffers(sql string, args ...any) int {
	e.t.Helper()
	plan := e.explain(`EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) `+sql, args...)
	return plan.Hit + plan.Read
}

func (e *explainer) explain(sql string, args ...any) node {
	e.t.Helper()
	var text string
	if err := e.conn.QueryRow(e.t.Context(), sql, args...).Scan(&text); err != nil {
		e.t.Fatalf("%s: %v", sql, err)
	}
	var plans []struct{ Plan node }
	if err := json.Unmarshal([]byte(text), &plans); err != nil {
		e.t.Fatal(err)
	}
	return plans[0].Plan
}

// readStatement returns a statement as the daemon embeds it.
func readStatement(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile("sql/" + name + ".sql")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
