// Package deploytest holds the tests of what lies beside the program: the Kubernetes manifests, the
// Prometheus rules, the Grafana dashboard, the runbook and the operations guide. It has no code of
// its own, and is a module of its own, because it needs the API types of Kubernetes and the parser
// of PromQL, which the program does not.
//
//	cd deploy/test && go test ./...
//	go test -run Footprint -footprint 20000 -v   # the figures of docs/operations.md
//	go test -run PrometheusRule -update          # writes the PrometheusRule from deploy/prometheus
//
// Its tests run the program as it is built from the tree above, against a PostgreSQL of their own
// and a mail server that fails when told to. Those that need Debian's package prometheus (prometheus
// and promtool) are skipped where it is missing, and fail where the variable CI is set.
//
// Invariants:
//
//  1. A manifest is decoded strictly into its API type: no key is misspelled, no value has a wrong type.
//  2. What one file names in another (port, label, key, path, metric, heading, command) is there.
//  3. Every alert fires in one test and keeps silent in another; every query of the dashboard returns
//     data of a running daemon.
//  4. Every command of the documents is run.
package deploytest
