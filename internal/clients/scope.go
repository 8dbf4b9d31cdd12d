package clients

import (
	"slices"
	"strings"

	"holdfast/domain"
)

// Scope is one thing that a token allows.
type Scope string

// The scopes.
const (
	BookingsRead  Scope = "bookings:read"
	BookingsWrite Scope = "bookings:write"
	Finance       Scope = "finance"
	Operator      Scope = "operator" // all of the following

	OperatorRead      Scope = "operator:read"   // see effects, timelines, the audit
	OperatorReplay    Scope = "operator:replay" // each act is a permission of its own, and means reading, too
	OperatorRepublish Scope = "operator:republish"
	OperatorResolve   Scope = "operator:resolve"
	OperatorRefund    Scope = "operator:refund"
	OperatorDiscard   Scope = "operator:discard"
	OperatorPause     Scope = "operator:pause"
)

// Scopes lists every scope.
func Scopes() []Scope {
	return []Scope{
		BookingsRead, BookingsWrite, Finance, Operator, OperatorRead, OperatorReplay, OperatorRepublish, OperatorResolve,
		OperatorRefund, OperatorDiscard, OperatorPause,
	}
}

// part begins the name of everything that Operator allows.
const part = string(Operator) + ":"

// gives tells whether having a scope allows what another is needed for.
func (s Scope) gives(need Scope) bool {
	if s == Operator {
		return need == s || strings.HasPrefix(string(need), part)
	}
	return need == s || need == OperatorRead && strings.HasPrefix(string(s), part) // whoever may do an act may look
}

// ParseScopes reads scopes as a person writes them, in any order and with repeats. One that does not exist, or none at
// all, is a *domain.ValidationError.
func ParseScopes(names []string) ([]Scope, error) {
	var scopes []Scope
	for _, name := range names {
		scope := Scope(strings.TrimSpace(name))
		if !slices.Contains(Scopes(), scope) {
			return nil, &domain.ValidationError{Field: "scopes", Reason: "there is no scope " + quote(name) + "; want " + known()}
		}
		scopes = append(scopes, scope)
	}
	if len(scopes) == 0 {
		return nil, &domain.ValidationError{Field: "scopes", Reason: "want at least one of " + known()}
	}
	slices.Sort(scopes)
	return slices.Compact(scopes), nil
}

func known() string {
	names := make([]string, 0, len(Scopes()))
	for _, s := range Scopes() {
		names = append(names, string(s))
	}
	return strings.Join(names, ", ")
}
