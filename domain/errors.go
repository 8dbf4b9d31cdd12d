package domain

import (
	"errors"
	"fmt"
)

// ErrNotFound says that what was asked for does not exist, or does not belong to whoever asked: the two are never told
// apart.
var ErrNotFound = errors.New("not found")

// ErrBusy says that the database could not take the work within the caller's time. Nothing is known to have happened,
// and the same request may be made again.
var ErrBusy = errors.New("busy")

// ValidationError says which member of a request can never be right, and why. Nothing was written.
type ValidationError struct {
	Field  string // the member at fault, as the client wrote it
	Reason string // what is wrong and what would be right
	Code   string // the problem's stable code; empty means validation_failed
}

func (e *ValidationError) Error() string { return fmt.Sprintf("%s: %s", e.Field, e.Reason) }
