package clients

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast/domain"
	"holdfast/internal/postgres"
)

// SessionLimits is how long somebody stays signed in. Zero values take the defaults.
type SessionLimits struct {
	Life time.Duration // from signing in; default 8 h
	Idle time.Duration // without a page that a person has asked for; default 30 min
}

// Sessions knows who is signed in to the operators' pages. A session stands for the token that began it: what that token may
// not do, it may not do, and once the token is revoked or expired, the session is over, too.
type Sessions struct {
	db     postgres.Querier
	limits SessionLimits
}

// NewSessions makes it on a pool.
func NewSessions(db postgres.Querier, limits SessionLimits) *Sessions {
	if limits.Life <= 0 {
		limits.Life = 8 * time.Hour
	}
	if limits.Idle <= 0 {
		limits.Idle = 30 * time.Minute
	}
	return &Sessions{db: db, limits: limits}
}

// Begin signs in whoever holds the token, and returns what the browser has to show from now on; only its hash is kept. Sessions
// that are over are forgotten on the way.
func (s *Sessions) Begin(ctx context.Context, token TokenID) (domain.Secret, error) {
	session, hashed := newSession()
	_, err := s.db.Exec(ctx, `
		WITH ended AS (
			DELETE FROM console_sessions
			 WHERE hash IN (SELECT hash FROM console_sessions WHERE expires_at <= clock_timestamp() LIMIT 100)
		)
		INSERT INTO console_sessions (hash, token_id, expires_at) VALUES (@hash, @token, clock_timestamp() + @life::interval)`,
		pgx.NamedArgs{"hash": hashed, "token": token.UUID, "life": s.limits.Life})
	if err != nil {
		return "", unanswered(err)
	}
	return session, nil
}

// Resume finds out who is signed in, in one round trip, and asks each time. seen tells that a person has asked for something: a
// page that refreshes itself keeps nobody signed in. It returns ErrUnauthenticated, or domain.ErrBusy where the database could
// not be asked.
func (s *Sessions) Resume(ctx context.Context, session domain.Secret, seen bool) (Principal, error) {
	if !wellFormedSession(session) {
		return Principal{}, ErrUnauthenticated
	}
	return onePrincipal(ctx, s.db, `
		WITH session AS (
			SELECT s.hash, t.id AS token_id, t.client_id, c.name, t.scopes
			  FROM console_sessions s JOIN api_tokens t ON t.id = s.token_id JOIN clients c ON c.id = t.client_id
			 WHERE s.hash = @hash AND s.expires_at > clock_timestamp() AND s.last_seen_at > clock_timestamp() - @idle::interval
			   AND t.revoked_at IS NULL AND t.expires_at > clock_timestamp()
		), seen AS (
			UPDATE console_sessions s SET last_seen_at = clock_timestamp() FROM session WHERE @seen AND s.hash = session.hash
		)
		SELECT token_id, client_id, name, scopes FROM session`,
		pgx.NamedArgs{"hash": hash(session), "idle": s.limits.Idle, "seen": seen})
}

// End signs out. Ending a session that is over changes nothing.
func (s *Sessions) End(ctx context.Context, session domain.Secret) error {
	if _, err := s.db.Exec(ctx, `DELETE FROM console_sessions WHERE hash = $1`, hash(session)); err != nil {
		return unanswered(err)
	}
	return nil
}

// Holder finds the client of a name with its newest live token that has one of the scopes: it is how somebody is let in whom an
// identity provider vouches for. It returns ErrUnauthenticated if there is none.
func (s *Sessions) Holder(ctx context.Context, name string, scopes []Scope) (Principal, error) {
	return onePrincipal(ctx, s.db, `
		SELECT t.id AS token_id, t.client_id, c.name, t.scopes
		  FROM api_tokens t JOIN clients c ON c.id = t.client_id
		 WHERE c.name = @name AND t.revoked_at IS NULL AND t.expires_at > clock_timestamp() AND t.scopes && @scopes
		 ORDER BY t.created_at DESC, t.id DESC
		 LIMIT 1`, pgx.NamedArgs{"name": name, "scopes": scopes})
}
