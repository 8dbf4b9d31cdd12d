// Package postgres is the plumbing between this service and PostgreSQL: a pool with mandatory time-outs, transactions
// whose failed COMMIT is an unknown outcome, and the only place that reads SQLSTATE and constraint names.
//
// It owns no table.
package postgres
