package finance_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/finance"
	"holdfast/outbox"
)

// A period is not signed off while one of its equations is broken, though no exception is open; the refusal names it. A payout that differs
// from its rows by just what was signed off counts as explained.
func TestSignOffPeriod_NeedsEveryIdentity(t *testing.T) {
	t.Parallel()
	b := setup(t, 1500, 0)
	d := b.desk(b.provider())
	period := finance.Period{From: b.window.From.Format(time.DateOnly), To: b.window.To.Format(time.DateOnly), Zone: "UTC"}
	r, err := d.Report(t.Context(), period)
	require.NoError(t, err)
	require.Zero(t, r.Open()+r.Broken())
	refused := func(names ...string) {
		t.Helper()
		_, err := d.SignOffPeriod(t.Context(), period, "ada", "the month is closed")
		no := &outbox.RefusedError{}
		require.ErrorAs(t, err, &no)
		for _, name := range names {
			require.Contains(t, no.Reason, name)
		}
	}

	payout := r.Payouts[0]
	b.exec(`DELETE FROM payout_transactions WHERE (payout_id, transaction_id) = (SELECT payout_id, min(transaction_id) FROM payout_transactions WHERE payout_id = $1 GROUP BY 1)`,
		payout.ID)
	refused("1 exception is open")
	open, err := d.Items(t.Context(), finance.Filter{Status: "open"})
	require.NoError(t, err)
	require.Equal(t, finance.PayoutDiffers, open[0].Kind)
	_, err = d.SignOff(t.Context(), open[0].ID, "ada", "the provider has looked into it")
	require.NoError(t, err)
	r, err = d.Report(t.Context(), period)
	require.NoError(t, err)
	require.Zero(t, r.Open()+r.Broken(), "%v", r.Identities)

	var currency string
	b.scan(`
		INSERT INTO ledger_entries (origin, kind, debit, credit, amount, currency, about, occurred_at)
		SELECT 'provider', 'adjustment', 'provider_balance', 'adjustments', 7, currency, id, created_at FROM provider_transactions WHERE category = 'charge' LIMIT 1
		RETURNING currency`, &currency)
	refused("2 of the period's checks", "our ledger's charge = the provider's ("+currency+")", "opening + activity + payouts = closing ("+currency+")")
	b.exec(`
		INSERT INTO ledger_entries (origin, kind, debit, credit, amount, currency, about, occurred_at)
		SELECT origin, kind, credit, debit, amount, currency, about, occurred_at FROM ledger_entries WHERE kind = 'adjustment'`)
	signed, err := d.SignOffPeriod(t.Context(), period, "ada", "the month is closed")
	require.NoError(t, err)
	require.Equal(t, "ada", signed.SignedOffBy)
}
