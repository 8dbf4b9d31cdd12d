package console_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"holdfast/internal/clients"
	"holdfast/internal/console"
	"holdfast/internal/finance"
)

// A comparison that takes longer than a page may is waited for by the page, and a signature goes on without it.
func TestMonth_WaitsForTheComparison(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *console.Config) {
		desk, _ := c.Books.(*finance.Comparing)
		c.Books = finance.NewComparing(t.Context(), 2*time.Second, func(func(finance.Progress)) *finance.Desk { return desk.Desk })
	})
	b.exec(`INSERT INTO reconciliation_runs (id, kind, status, from_at, to_at, finished_at) VALUES ($1, 'read', 'complete', '2025-01-01Z', '2026-01-01Z', now())`, uuid.New())
	v := b.visitor()
	v.post("/sign-in", "token", b.token("Bea", clients.Finance).Reveal())
	const march = "/finance?from=2025-03-01&to=2025-04-01&zone=UTC"
	release := b.matchingElsewhere()
	a := v.get(march)
	require.Equal(t, http.StatusServiceUnavailable, a.status)
	require.Equal(t, "2", a.header.Get("Refresh"))
	require.Contains(t, a.body, "The books are being compared")
	release()
	require.Eventually(t, func() bool { a = v.get(march); return a.status == http.StatusOK }, time.Minute, 10*time.Millisecond)
	require.Contains(t, a.body, "No transactions in this period")
	require.NotContains(t, a.body, "Nothing is stored")
	require.NotContains(t, a.body, "counts statement", "no table without figures")
	require.Contains(t, a.body, "What to do: <span class=\"text\">Sign the period off")
	require.Empty(t, a.header.Get("Refresh"))

	form := append(v.fields(march), "from", "2025-03-01", "to", "2025-04-01", "zone", "UTC", "reason", "nothing happened")
	release = b.matchingElsewhere()
	a = v.post("/finance/sign-off", form...)
	require.Contains(t, a.body, "The books are compared once more", a.body)
	require.Zero(t, scan[int](b, `SELECT count(*) FROM finance_periods`))
	release()
	require.Eventually(t, func() bool {
		return scan[int](b, `SELECT count(*) FROM finance_periods WHERE signed_off_by = 'Bea'`) == 1
	}, time.Minute, 10*time.Millisecond)
	require.Eventually(t, func() bool {
		a = v.get("/finance?from=2025-03-01&to=2025-04-02&zone=UTC")
		return a.status == http.StatusOK
	}, time.Minute, 10*time.Millisecond)
	require.Contains(t, a.body, `<strong>Signed off:</strong> <span class="text">March 2025, days of UTC</span>, by`, "which days, where more are shown")
	require.Contains(t, a.body, "Sign the rest off")
	require.Contains(t, a.body, "A part of it is signed off")
}

// matchingElsewhere is another process that compares, until it is told to stop.
func (b *bed) matchingElsewhere() (stop func()) {
	b.Helper()
	tx, err := b.db.Pool.Begin(b.Context())
	require.NoError(b, err)
	_, err = tx.Exec(b.Context(), `SELECT pg_advisory_xact_lock($1)`, int64(0x66696e616e6365))
	require.NoError(b, err)
	return func() { require.NoError(b, tx.Rollback(b.Context())) }
}
