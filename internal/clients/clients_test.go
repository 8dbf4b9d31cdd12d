package clients_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/internal/clients"
	"holdfast/internal/postgres"
	"holdfast/internal/testdb"
)

func TestMain(m *testing.M) { testdb.Main(m) }

func create(t *testing.T, s *clients.Service, client string, scopes ...clients.Scope) clients.Created {
	t.Helper()
	made, err := s.Create(t.Context(), client, scopes, "a label", time.Hour)
	require.NoError(t, err)
	return made
}

func TestTokenIsShownOnceAndStoredAsItsHash(t *testing.T) {
	t.Parallel()
	tx := testdb.Tx(t)
	s := clients.New(tx)
	made := create(t, s, "acme", clients.BookingsRead)
	random, err := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(made.Token.Reveal(), "hf_"))
	require.NoError(t, err)
	require.Len(t, random, 32, "256 random bits")

	var stored []byte
	require.NoError(t, tx.QueryRow(t.Context(), `SELECT hash FROM api_tokens WHERE id = $1`, made.ID.UUID).Scan(&stored))
	sum := sha256.Sum256([]byte(made.Token.Reveal()))
	require.Equal(t, sum[:], stored)
	var everything string
	require.NoError(t, tx.QueryRow(t.Context(), `SELECT string_agg(t::text, '') || (SELECT string_agg(c::text, '') FROM clients c) FROM api_tokens t`).Scan(&everything))
	require.NotContains(t, everything, strings.TrimPrefix(made.Token.Reveal(), "hf_"))
	require.NotEqual(t, made.Token, create(t, s, "acme", clients.BookingsRead).Token)

	// G9: formatting, logging and JSON hide it.
	text, err := json.Marshal(made)
	require.NoError(t, err)
	require.NotContains(t, fmt.Sprintf("%v %+v %#v %s", made, made, made, text), made.Token.Reveal())
}

func TestAuthenticate(t *testing.T) {
	t.Parallel()
	s := clients.New(testdb.Tx(t))
	made := create(t, s, "acme", clients.BookingsRead, clients.Operator)
	p, err := s.Authenticate(t.Context(), made.Token)
	require.NoError(t, err)
	require.Equal(t, clients.Principal{
		ClientID: made.ClientID, Name: "acme", TokenID: made.ID, Scopes: []clients.Scope{clients.BookingsRead, clients.Operator},
	}, p)
	require.True(t, p.Can(clients.Operator))
	require.False(t, p.Can(clients.BookingsWrite))
}

func TestOneClientHasManyTokens(t *testing.T) {
	t.Parallel()
	db := testdb.New(t)
	s := clients.New(db.Pool)
	ids := make([]domain.ClientID, 20)
	var all sync.WaitGroup
	for i := range ids {
		all.Go(func() {
			made, err := s.Create(t.Context(), "acme", clients.Scopes(), "", time.Hour)
			if err == nil {
				ids[i] = made.ClientID
			}
		})
	}
	all.Wait()
	for _, id := range ids {
		require.Equal(t, ids[0], id, "rivals make one client")
	}
	require.NotEqual(t, ids[0], create(t, s, "Acme", clients.Finance).ClientID)
}

func TestTokensThatOpenNothingAreAlike(t *testing.T) {
	t.Parallel()
	tx := testdb.Tx(t)
	s := clients.New(tx)
	made := create(t, s, "acme", clients.BookingsRead)
	good := made.Token.Reveal()
	for name, token := range map[string]string{
		"empty": "", "prefix": "hf_", "unknown": "hf_" + strings.Repeat("A", 43), "cut": good[:len(good)-1], "longer": good + "A",
		"case": "HF_" + good[3:], "bare": good[3:], "blank": good + " ", "NUL": good[:10] + "\x00" + good[11:],
	} {
		_, err := s.Authenticate(t.Context(), domain.Secret(token))
		require.Equal(t, clients.ErrUnauthenticated, err, name)
	}
	for name, sql := range map[string]string{
		"expired": `UPDATE api_tokens SET expires_at = clock_timestamp()`,
		"revoked": `UPDATE api_tokens SET expires_at = 'infinity', revoked_at = clock_timestamp()`,
	} {
		_, err := tx.Exec(t.Context(), sql)
		require.NoError(t, err)
		_, err = s.Authenticate(t.Context(), made.Token)
		require.Equal(t, clients.ErrUnauthenticated, err, name)
	}
}

// Expiry is judged by the database's clock, by now and not by the transaction's beginning.
func TestExpiryPassesWithinATransaction(t *testing.T) {
	t.Parallel()
	tx := testdb.Tx(t)
	s := clients.New(tx)
	made := create(t, s, "acme", clients.BookingsRead)
	_, err := tx.Exec(t.Context(), `UPDATE api_tokens SET expires_at = clock_timestamp() + interval '20 ms'`)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		_, err := s.Authenticate(t.Context(), made.Token)
		return err != nil
	}, time.Minute, time.Millisecond)
}

func TestRevocationCountsAtOnce(t *testing.T) {
	t.Parallel()
	s := clients.New(testdb.Tx(t))
	made, other := create(t, s, "acme", clients.BookingsRead), create(t, s, "acme", clients.BookingsRead)
	_, err := s.Authenticate(t.Context(), made.Token)
	require.NoError(t, err)
	at, err := s.Revoke(t.Context(), made.ID)
	require.NoError(t, err)
	_, err = s.Authenticate(t.Context(), made.Token)
	require.ErrorIs(t, err, clients.ErrUnauthenticated)
	_, err = s.Authenticate(t.Context(), other.Token)
	require.NoError(t, err, "another token of the client is untouched")
	again, err := s.Revoke(t.Context(), made.ID)
	require.NoError(t, err)
	require.Equal(t, at, again)
	_, err = s.Revoke(t.Context(), domain.NewID[clients.TokenID]())
	require.ErrorIs(t, err, domain.ErrNotFound)
}

func TestList(t *testing.T) {
	t.Parallel()
	db := testdb.New(t)
	s := clients.New(db.Pool)
	none, err := s.List(t.Context())
	require.NoError(t, err)
	require.Empty(t, none)
	active, expired, revoked := create(t, s, "a", clients.BookingsRead), create(t, s, "b", clients.Finance), create(t, s, "c", clients.Operator)
	_, err = db.Pool.Exec(t.Context(), `UPDATE api_tokens SET expires_at = clock_timestamp() WHERE id = $1`, expired.ID.UUID)
	require.NoError(t, err)
	_, err = s.Revoke(t.Context(), revoked.ID)
	require.NoError(t, err)
	list, err := s.List(t.Context())
	require.NoError(t, err)
	require.Len(t, list, 3)
	require.Equal(t, []clients.TokenID{revoked.ID, expired.ID, active.ID}, []clients.TokenID{list[0].ID, list[1].ID, list[2].ID}, "the newest first")
	require.Equal(t, []clients.Status{clients.Revoked, clients.Expired, clients.Active}, []clients.Status{list[0].Status, list[1].Status, list[2].Status})
	require.NotNil(t, list[0].RevokedAt)
	require.Equal(t, "a label", list[2].Label)
	require.Equal(t, []clients.Scope{clients.BookingsRead}, list[2].Scopes)
	require.WithinDuration(t, active.ExpiresAt, list[2].ExpiresAt, 0)
}

func TestWhatCanNeverBeRightIsRefused(t *testing.T) {
	t.Parallel()
	tx := testdb.Tx(t)
	s := clients.New(tx)
	for name, c := range map[string]struct {
		client, label, field string
		scopes               []clients.Scope
		lasts                time.Duration
	}{
		"no name":        {"", "", "client", clients.Scopes(), time.Hour},
		"long name":      {strings.Repeat("n", 201), "", "client", clients.Scopes(), time.Hour},
		"name with NUL":  {"a\x00", "", "client", clients.Scopes(), time.Hour},
		"invalid UTF-8":  {"a\xff", "", "client", clients.Scopes(), time.Hour},
		"no scope":       {"a", "", "scopes", nil, time.Hour},
		"label of lines": {"a", "x\ny", "label", clients.Scopes(), time.Hour},
		"no time":        {"a", "", "expires_in", clients.Scopes(), 0},
		"past":           {"a", "", "expires_in", clients.Scopes(), -time.Hour},
		"for ever":       {"a", "", "expires_in", clients.Scopes(), clients.MaxLifetime + 1},
	} {
		_, err := s.Create(t.Context(), c.client, c.scopes, c.label, c.lasts)
		var invalid *domain.ValidationError
		require.ErrorAs(t, err, &invalid, name)
		require.Equal(t, c.field, invalid.Field, name)
	}
	var n int
	require.NoError(t, tx.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM clients) + (SELECT count(*) FROM api_tokens)`).Scan(&n))
	require.Zero(t, n, "nothing was written")
}

func TestScopesAsWritten(t *testing.T) {
	t.Parallel()
	got, err := clients.ParseScopes([]string{"operator", " bookings:read", "operator"})
	require.NoError(t, err)
	require.Equal(t, []clients.Scope{clients.BookingsRead, clients.Operator}, got)
	for _, bad := range [][]string{nil, {}, {""}, {"admin"}, {"bookings:read", "Operator"}} {
		_, err := clients.ParseScopes(bad)
		var invalid *domain.ValidationError
		require.ErrorAs(t, err, &invalid, "%q", bad)
	}
}

// Every scope that the code knows can be stored, and no other.
func TestScopesAreThoseOfTheSchema(t *testing.T) {
	t.Parallel()
	s := clients.New(testdb.Tx(t))
	create(t, s, "acme", clients.Scopes()...)
	_, err := s.Create(t.Context(), "acme", []clients.Scope{"root"}, "", time.Hour)
	require.ErrorContains(t, err, "api_tokens_scopes_check")
}

// counter counts queries.
type counter struct {
	postgres.Querier

	queries int
}

func (c *counter) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	c.queries++
	return c.Querier.Query(ctx, sql, args...) //nolint:rowserrcheck // the caller checks
}

func TestAuthenticateIsOneRoundTrip(t *testing.T) {
	t.Parallel()
	counted := &counter{Querier: testdb.Tx(t)}
	s := clients.New(counted)
	made := create(t, s, "acme", clients.BookingsRead)
	counted.queries = 0
	_, err := s.Authenticate(t.Context(), made.Token)
	require.NoError(t, err)
	require.Equal(t, 1, counted.queries)
	_, err = s.Authenticate(t.Context(), "nonsense")
	require.Error(t, err)
	require.Equal(t, 1, counted.queries, "what cannot be a token asks nobody")
}

func TestDatabaseThatIsAwayIsBusy(t *testing.T) {
	t.Parallel()
	pool, err := postgres.Open(t.Context(), postgres.PoolConfig{URL: "postgres://x@127.0.0.1:1/x", ApplicationName: "test"})
	require.NoError(t, err)
	defer pool.Close()
	_, err = clients.New(pool).Authenticate(t.Context(), domain.Secret("hf_"+strings.Repeat("A", 43)))
	require.ErrorIs(t, err, domain.ErrBusy)
	require.NotErrorIs(t, err, clients.ErrUnauthenticated)
}

// TestScopesThatGiveOthers (G9): operator means each of its parts, each act of an operator means reading, and nothing else gives anything.
func TestScopesThatGiveOthers(t *testing.T) {
	t.Parallel()
	for _, has := range clients.Scopes() {
		for _, need := range clients.Scopes() {
			part := strings.HasPrefix(string(need), "operator:")
			want := has == need || has == clients.Operator && part ||
				strings.HasPrefix(string(has), "operator:") && need == clients.OperatorRead
			require.Equal(t, want, clients.Principal{Scopes: []clients.Scope{has}}.Can(need), "%s for %s", has, need)
		}
	}
	require.False(t, clients.Principal{}.Can(clients.OperatorRead))
}
