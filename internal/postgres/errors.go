package postgres

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// The SQLSTATEs that somebody acts on. Source: PostgreSQL 15, appendix A.
const (
	stateUniqueViolation      = "23505"
	stateSerialization        = "40001"
	stateDeadlock             = "40P01"
	stateLockNotAvailable     = "55P03"
	stateQueryCanceled        = "57014" // statement_timeout
	stateTooManyConnections   = "53300"
	stateIdleInTransaction    = "25P03"
	classConnection           = "08"
	classOperatorIntervention = "57P" // shut down, crash, cannot connect now
)

// IsUnique tells whether err is a violation of the named unique constraint.
func IsUnique(err error, constraint string) bool {
	var e *pgconn.PgError
	return errors.As(err, &e) && e.Code == stateUniqueViolation && e.ConstraintName == constraint
}

// IsLockTimeout tells whether a lock was not had in time. It is evidence of nothing else.
func IsLockTimeout(err error) bool { return hasState(err, stateLockNotAvailable) }

// IsTransient tells whether the statement certainly did nothing and may go through if it is run again: a deadlock, a
// serialisation failure, a lock or statement time-out, a server that refuses connections.
func IsTransient(err error) bool {
	return hasState(err, stateSerialization, stateDeadlock, stateLockNotAvailable, stateQueryCanceled, stateTooManyConnections)
}

// IsUnavailable tells whether the database could not be reached, or the connection broke. If a statement had been sent
// by then, its outcome is unknown.
func IsUnavailable(err error) bool {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return strings.HasPrefix(e.Code, classConnection) || strings.HasPrefix(e.Code, classOperatorIntervention) ||
			e.Code == stateTooManyConnections || e.Code == stateIdleInTransaction
	}
	var dial *pgconn.ConnectError
	var network net.Error
	return errors.As(err, &dial) || errors.As(err, &network) || pgconn.Timeout(err) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, pgx.ErrNoRows) && pgconn.SafeToRetry(err)
}

// SafeToRetry tells whether no byte of the statement can have reached the server.
func SafeToRetry(err error) bool { return pgconn.SafeToRetry(err) }

// Raised is what a function of ours said with RAISE under an SQLSTATE of class HF.
type Raised struct {
	Code    string // HF404, HF422
	Column  string // the member at fault
	Message string
	Hint    string // the problem's stable code
}

// AsRaised returns what a function of ours raised.
func AsRaised(err error) (Raised, bool) {
	var e *pgconn.PgError
	if !errors.As(err, &e) || !strings.HasPrefix(e.Code, "HF") {
		return Raised{}, false
	}
	return Raised{Code: e.Code, Column: e.ColumnName, Message: e.Message, Hint: e.Hint}, true
}

// State returns the SQLSTATE of err, or "" if it is not the server's.
func State(err error) string {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

func isServerError(err error) bool {
	var e *pgconn.PgError
	// The server ended the connection while it was committing: that says nothing about the commit.
	return errors.As(err, &e) && !strings.HasPrefix(e.Code, classOperatorIntervention)
}

func hasState(err error, states ...string) bool {
	var e *pgconn.PgError
	if !errors.As(err, &e) {
		return false
	}
	for _, s := range states {
		if e.Code == s {
			return true
		}
	}
	return false
}
