package clients_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/internal/clients"
	"holdfast/internal/testdb"
)

func TestSessionIsStoredAsItsHashAndStandsForItsToken(t *testing.T) {
	t.Parallel()
	tx := testdb.Tx(t)
	s, sessions := clients.New(tx), clients.NewSessions(tx, clients.SessionLimits{})
	made := create(t, s, "session", clients.Operator)
	session, err := sessions.Begin(t.Context(), made.ID)
	require.NoError(t, err)
	var everything string
	require.NoError(t, tx.QueryRow(t.Context(), `SELECT string_agg(s::text, '') FROM console_sessions s`).Scan(&everything))
	require.NotContains(t, everything, session.Reveal())
	other, err := sessions.Begin(t.Context(), made.ID)
	require.NoError(t, err)
	require.NotEqual(t, session, other)

	who, err := sessions.Resume(t.Context(), session, true)
	require.NoError(t, err)
	require.Equal(t, clients.Principal{ClientID: made.ClientID, Name: "session", TokenID: made.ID, Scopes: []clients.Scope{clients.Operator}}, who)
	require.NoError(t, sessions.End(t.Context(), session))
	require.NoError(t, sessions.End(t.Context(), session), "again")
	_, err = sessions.Resume(t.Context(), session, true)
	require.Equal(t, clients.ErrUnauthenticated, err)
	_, err = sessions.Resume(t.Context(), other, true)
	require.NoError(t, err, "another session of the token is untouched")
	for _, not := range []string{"", "x", made.Token.Reveal(), session.Reveal() + "A"} {
		_, err = sessions.Resume(t.Context(), domain.Secret(not), true)
		require.Equal(t, clients.ErrUnauthenticated, err, not)
	}
}

// A revoked or expired token ends its sessions at once, and so do their own limits.
func TestSessionIsOver(t *testing.T) {
	t.Parallel()
	for name, sql := range map[string]string{
		"token revoked": `UPDATE api_tokens SET revoked_at = clock_timestamp()`,
		"token expired": `UPDATE api_tokens SET expires_at = clock_timestamp()`,
		"its time over": `UPDATE console_sessions SET expires_at = clock_timestamp()`,
		"left alone":    `UPDATE console_sessions SET last_seen_at = clock_timestamp() - interval '30 min'`,
	} {
		tx := testdb.Tx(t)
		sessions := clients.NewSessions(tx, clients.SessionLimits{})
		session, err := sessions.Begin(t.Context(), create(t, clients.New(tx), name, clients.Operator).ID) // names of one test's own: rivals wait
		require.NoError(t, err)
		_, err = tx.Exec(t.Context(), sql)
		require.NoError(t, err)
		_, err = sessions.Resume(t.Context(), session, true)
		require.Equal(t, clients.ErrUnauthenticated, err, name)
	}
}

// Only what a person asks for keeps a session from ending unused; what a page fetches by itself does not.
func TestPageThatRefreshesItselfKeepsNobodySignedIn(t *testing.T) {
	t.Parallel()
	tx := testdb.Tx(t)
	sessions := clients.NewSessions(tx, clients.SessionLimits{Life: time.Hour, Idle: time.Minute})
	session, err := sessions.Begin(t.Context(), create(t, clients.New(tx), "seen", clients.Operator).ID)
	require.NoError(t, err)
	seen := func(touch bool) time.Duration {
		_, err := tx.Exec(t.Context(), `UPDATE console_sessions SET last_seen_at = clock_timestamp() - interval '50 s'`)
		require.NoError(t, err)
		_, err = sessions.Resume(t.Context(), session, touch)
		require.NoError(t, err)
		var ago time.Duration
		require.NoError(t, tx.QueryRow(t.Context(), `SELECT clock_timestamp() - last_seen_at FROM console_sessions`).Scan(&ago))
		return ago
	}
	require.Greater(t, seen(false), 49*time.Second)
	require.Less(t, seen(true), 10*time.Second)
	var left time.Duration
	require.NoError(t, tx.QueryRow(t.Context(), `SELECT expires_at - clock_timestamp() FROM console_sessions`).Scan(&left))
	require.InDelta(t, time.Hour.Seconds(), left.Seconds(), 60)
}

func TestSessionsThatAreOverAreForgotten(t *testing.T) {
	t.Parallel()
	tx := testdb.Tx(t)
	made := create(t, clients.New(tx), "forgotten", clients.Operator)
	sessions := clients.NewSessions(tx, clients.SessionLimits{})
	_, err := sessions.Begin(t.Context(), made.ID)
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), `UPDATE console_sessions SET expires_at = clock_timestamp()`)
	require.NoError(t, err)
	_, err = sessions.Begin(t.Context(), made.ID)
	require.NoError(t, err)
	var n int
	require.NoError(t, tx.QueryRow(t.Context(), `SELECT count(*) FROM console_sessions`).Scan(&n))
	require.Equal(t, 1, n)
}

// Whoever an identity provider vouches for is let in by the newest live token of an operator, or not at all.
func TestHolder(t *testing.T) {
	t.Parallel()
	tx := testdb.Tx(t)
	s, sessions := clients.New(tx), clients.NewSessions(tx, clients.SessionLimits{})
	create(t, s, "ops@example.org", clients.BookingsRead)
	create(t, s, "else@example.org", clients.Operator)
	holder := func() (clients.Principal, error) {
		return sessions.Holder(t.Context(), "ops@example.org", []clients.Scope{clients.Operator})
	}
	_, err := holder()
	require.Equal(t, clients.ErrUnauthenticated, err, "no token of an operator")
	old, newest := create(t, s, "ops@example.org", clients.Operator), create(t, s, "ops@example.org", clients.Finance, clients.Operator)
	who, err := holder()
	require.NoError(t, err)
	require.Equal(t, newest.ID, who.TokenID)
	_, err = s.Revoke(t.Context(), newest.ID)
	require.NoError(t, err)
	who, err = holder()
	require.NoError(t, err)
	require.Equal(t, old.ID, who.TokenID)
	_, err = s.Revoke(t.Context(), old.ID)
	require.NoError(t, err)
	_, err = holder()
	require.Equal(t, clients.ErrUnauthenticated, err)
}
