package clients

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"holdfast/domain"
	"holdfast/internal/postgres"
)

const (
	maxName  = 200
	maxLabel = 200

	// MaxLifetime is the longest that a token can be valid.
	MaxLifetime = 10 * 365 * 24 * time.Hour
)

// Service makes, lists and revokes tokens.
type Service struct{ db postgres.Querier }

// New makes the service on a pool.
func New(db postgres.Querier) *Service { return &Service{db: db} }

// Created is a new token, in the only moment in which it can be read.
type Created struct {
	Token     domain.Secret
	ID        TokenID
	ClientID  domain.ClientID
	Client    string
	Scopes    []Scope
	ExpiresAt time.Time
}

// Create makes a token for the client of that name, and the client if there is none yet. What can never be right is a
// *domain.ValidationError, and nothing was written.
func (s *Service) Create(ctx context.Context, clientName string, scopes []Scope, label string, expiresIn time.Duration) (Created, error) {
	if err := validate(clientName, scopes, label, expiresIn); err != nil {
		return Created{}, err
	}
	token, hashed := newToken()
	c := Created{Token: token, ID: domain.NewID[TokenID](), Client: clientName, Scopes: scopes}
	// The update that changes nothing makes an existing client's row come back, also one that a rival is just making.
	err := s.db.QueryRow(ctx, `
		WITH client AS (
			INSERT INTO clients (id, name) VALUES (@client, @name)
			ON CONFLICT ON CONSTRAINT clients_name_key DO UPDATE SET name = EXCLUDED.name
			RETURNING id
		)
		INSERT INTO api_tokens (id, client_id, hash, scopes, label, expires_at)
		SELECT @token, client.id, @hash, @scopes, @label, clock_timestamp() + @expires_in::interval
		  FROM client
		RETURNING client_id, expires_at`,
		pgx.NamedArgs{
			"client": domain.NewID[domain.ClientID]().UUID, "name": clientName,
			"token": c.ID.UUID, "hash": hashed, "scopes": scopes, "label": label, "expires_in": expiresIn,
		}).Scan(&c.ClientID.UUID, &c.ExpiresAt)
	if err != nil {
		return Created{}, fmt.Errorf("create a token: %w", err)
	}
	return c, nil
}

// Status is whether a token opens anything.
type Status string

// The states of a token.
const (
	Active  Status = "active"
	Expired Status = "expired"
	Revoked Status = "revoked"
)

// Token is what can be told of a token after it was made.
type Token struct {
	ID        TokenID
	ClientID  domain.ClientID
	Client    string
	Scopes    []Scope
	Label     string
	Status    Status // by the database's clock
	CreatedAt time.Time
	ExpiresAt time.Time
	RevokedAt *time.Time
}

// List tells of every token, the newest first.
func (s *Service) List(ctx context.Context) ([]Token, error) {
	rows, err := s.db.Query(ctx, `
		SELECT t.id, t.client_id, c.name AS client, t.scopes, t.label, t.created_at, t.expires_at, t.revoked_at,
		       CASE WHEN t.revoked_at IS NOT NULL THEN 'revoked'
		            WHEN t.expires_at <= clock_timestamp() THEN 'expired'
		            ELSE 'active' END AS status
		  FROM api_tokens t JOIN clients c ON c.id = t.client_id
		 ORDER BY t.created_at DESC, t.id DESC`)
	if err != nil {
		return nil, fmt.Errorf("list tokens: %w", err)
	}
	tokens, err := pgx.CollectRows(rows, pgx.RowToStructByName[Token])
	if err != nil {
		return nil, fmt.Errorf("list tokens: %w", err)
	}
	return tokens, nil
}

// Revoke ends a token: the next request with it is refused. Revoking it again changes nothing and tells when it first
// was. A token that does not exist is domain.ErrNotFound.
func (s *Service) Revoke(ctx context.Context, id TokenID) (time.Time, error) {
	var at time.Time
	err := s.db.QueryRow(ctx, `
		UPDATE api_tokens SET revoked_at = coalesce(revoked_at, clock_timestamp()) WHERE id = $1 RETURNING revoked_at`,
		id.UUID).Scan(&at)
	if errors.Is(err, pgx.ErrNoRows) {
		return time.Time{}, domain.ErrNotFound
	}
	if err != nil {
		return time.Time{}, fmt.Errorf("revoke token %s: %w", id, err)
	}
	return at, nil
}

func validate(clientName string, scopes []Scope, label string, expiresIn time.Duration) error {
	if !printable(clientName, 1, maxName) {
		return &domain.ValidationError{Field: "client", Reason: "want 1 to " + strconv.Itoa(maxName) + " characters, none of them a control character"}
	}
	if len(scopes) == 0 {
		return &domain.ValidationError{Field: "scopes", Reason: "want at least one of " + known()}
	}
	if !printable(label, 0, maxLabel) {
		return &domain.ValidationError{Field: "label", Reason: "want at most " + strconv.Itoa(maxLabel) + " characters, none of them a control character"}
	}
	if expiresIn < time.Second || expiresIn > MaxLifetime {
		return &domain.ValidationError{Field: "expires_in", Reason: "want at least 1s and at most " + MaxLifetime.String()}
	}
	return nil
}

func printable(s string, shortest, longest int) bool {
	if n := utf8.RuneCountInString(s); !utf8.ValidString(s) || n < shortest || n > longest {
		return false
	}
	for _, r := range s {
		if unicode.IsControl(r) {
			return false
		}
	}
	return true
}

func quote(s string) string { return strconv.QuoteToASCII(s) }
