package stripesim_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/payments/stripesim"
)

func TestCheckFindsWhatMustNotHappen(t *testing.T) {
	t.Parallel()
	now := time.Now()
	paid := func(intent, booking string) stripesim.LedgerCharge {
		return stripesim.LedgerCharge{PaymentIntent: intent, Status: "succeeded", Metadata: map[string]string{"booking_id": booking}}
	}
	run := func(key string, since time.Time) stripesim.Execution {
		return stripesim.Execution{Operation: "payment_intents.confirm", Key: key, KeySince: since}
	}
	const day = 24 * 60 * 60 * 1000
	require.NoError(t, stripesim.Ledger{
		Charges:        []stripesim.LedgerCharge{paid("pi_1", "b1"), paid("pi_2", ""), paid("pi_3", "")},
		Executions:     []stripesim.Execution{run("a", now), run("b", now), run("a", now.Add(24*time.Hour))},
		KeyRetentionMS: day,
	}.Check())
	require.ErrorContains(t, stripesim.Ledger{
		Charges: []stripesim.LedgerCharge{paid("pi_1", ""), paid("pi_1", "")},
	}.Check(), "payment intent pi_1: 2 successful charges")
	require.ErrorContains(t, stripesim.Ledger{
		Charges: []stripesim.LedgerCharge{paid("pi_1", "b1"), paid("pi_2", "b1")},
	}.Check(), "booking b1: 2 successful charges")
	refunded := paid("pi_1", "")
	refunded.Amount, refunded.AmountRefunded = 2000, 2001
	require.ErrorContains(t, stripesim.Ledger{Charges: []stripesim.LedgerCharge{refunded}}.Check(), "2001 refunded of 2000")
	given := stripesim.LedgerRefund{Charge: "ch_1", Amount: 1500, Status: "succeeded"}
	refunded.ID, refunded.AmountCaptured, refunded.AmountRefunded = "ch_1", 2000, 2000
	require.ErrorContains(t, stripesim.Ledger{
		Charges: []stripesim.LedgerCharge{refunded}, Refunds: []stripesim.LedgerRefund{given, given},
	}.Check(), "refunds of 3000, and it took 2000")
	require.ErrorContains(t, stripesim.Ledger{
		Executions: []stripesim.Execution{run("", now)},
	}.Check(), "without an idempotency key")
	require.ErrorContains(t, stripesim.Ledger{
		Executions:     []stripesim.Execution{run("a", now.Add(time.Hour)), run("a", now)},
		KeyRetentionMS: day,
	}.Check(), `key "a": executed twice`)
}
