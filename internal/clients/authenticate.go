package clients

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"holdfast/domain"
	"holdfast/internal/postgres"
)

// ErrUnauthenticated says that a token opens nothing. Whether it is unknown, expired or revoked is not told.
var ErrUnauthenticated = errors.New("the token is not valid")

// Principal is who calls, and what the token allows.
type Principal struct {
	ClientID domain.ClientID
	Name     string
	Scopes   []Scope
	TokenID  TokenID
}

// Can tells whether the token allows scope: by its name, as a part of operator, or, to read, as any act of an operator.
func (p Principal) Can(scope Scope) bool {
	return slices.ContainsFunc(p.Scopes, func(s Scope) bool { return s.gives(scope) })
}

// Authenticate finds out who holds the token, in one round trip, and asks each time: a revocation counts at once. It
// returns ErrUnauthenticated, or domain.ErrBusy where the database could not be asked; nothing is written.
func (s *Service) Authenticate(ctx context.Context, token domain.Secret) (Principal, error) {
	if !wellFormed(token) {
		return Principal{}, ErrUnauthenticated
	}
	return onePrincipal(ctx, s.db, `
		SELECT t.id AS token_id, t.client_id, c.name, t.scopes
		  FROM api_tokens t JOIN clients c ON c.id = t.client_id
		 WHERE t.hash = $1 AND t.revoked_at IS NULL AND t.expires_at > clock_timestamp()`, hash(token))
}

// onePrincipal reads the one row that a query finds.
func onePrincipal(ctx context.Context, db postgres.Querier, query string, args ...any) (Principal, error) {
	rows, err := db.Query(ctx, query, args...)
	if err != nil {
		return Principal{}, unanswered(err)
	}
	type row struct {
		TokenID  uuid.UUID
		ClientID uuid.UUID
		Name     string
		Scopes   []Scope
	}
	r, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[row])
	if errors.Is(err, pgx.ErrNoRows) {
		return Principal{}, ErrUnauthenticated
	}
	if err != nil {
		return Principal{}, unanswered(err)
	}
	return Principal{
		ClientID: domain.ClientID{UUID: r.ClientID}, Name: r.Name, Scopes: r.Scopes, TokenID: TokenID{r.TokenID},
	}, nil
}

// unanswered keeps "the database is busy" apart from "something is wrong with us".
func unanswered(err error) error {
	if postgres.IsTransient(err) || postgres.IsUnavailable(err) {
		return fmt.Errorf("authenticate: %w: %w", domain.ErrBusy, err)
	}
	return fmt.Errorf("authenticate: %w", err)
}
