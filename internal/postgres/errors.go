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
	stateSerialization        = "40001"
	stateReadOnly             = "25006" // a standby, or a server that refuses writes for now
	stateDeadlock             = "40P01"
	stateLockNotAvailable     = "55P03"
	stateUndefinedTable       = "42P01"
	stateQueryCanceled        = "57014" // statement_timeout
	stateTooManyConnections   = "53300"
	stateIdleInTransaction    = "25P03"
	classConnection           = "08"
	classResources            = "53"  // out of memory, disk full, too many connections
	classOperatorIntervention = "57P" // shut down, crash, cannot connect now
)

// IsUndefinedTable tells whether a table is missing: the database has no schema of ours, or an older one.
func IsUndefinedTable(err error) bool { return hasState(err, stateUndefinedTable) }

// IsTransient tells whether the statement certainly did nothing and may go through if it is run again: a deadlock, a
// serialisation failure, a lock or statement time-out, a server that refuses connections.
func IsTransient(err error) bool {
	return hasState(err, stateSerialization, stateDeadlock, stateLockNotAvailable, stateQueryCanceled, stateTooManyConnections)
}

// IsLockTimeout tells whether a statement waited for a lock as long as it may, and did nothing.
func IsLockTimeout(err error) bool { return hasState(err, stateLockNotAvailable) }

// IsUnavailable tells whether the database could not be reached, refuses our login, takes no work for now, or the
// connection broke. In the last case the outcome of a statement that was sent by then is unknown.
func IsUnavailable(err error) bool {
	var dial *pgconn.ConnectError
	if errors.As(err, &dial) {
		return true // whatever the reason, such as a password that was changed: no statement was sent
	}
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return strings.HasPrefix(e.Code, classConnection) || strings.HasPrefix(e.Code, classOperatorIntervention) ||
			strings.HasPrefix(e.Code, classResources) || e.Code == stateIdleInTransaction || e.Code == stateReadOnly
	}
	var network net.Error
	return errors.As(err, &network) || pgconn.Timeout(err) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, pgx.ErrNoRows) && pgconn.SafeToRetry(err)
}

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
