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
	Operator      Scope = "operator"
)

// Scopes lists every scope.
func Scopes() []Scope { return []Scope{BookingsRead, BookingsWrite, Finance, Operator} }

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
