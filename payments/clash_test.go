package payments_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/outbox"
	"holdfast/payments"
)

// A key that another send owns already is never sent (G3): its frozen parameters would give back somebody else's money.
func TestRecord_AKeyOfAnotherSendIsNotTakenOver(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.patient()
	id, other := b.paidFor(), b.paidFor()
	e, _ := b.ask(id, "key", 1000)
	var refund string
	b.scan(`SELECT id::text FROM refunds WHERE effect_id = $1`, &refund, e)
	b.exec(`UPDATE provider_calls SET key = $1 WHERE payment_id = $2::uuid AND operation = 'confirm'`, "hf:"+refund+":refund:1", b.paymentID(other))
	_, err := b.engine().Refund(b.ctx, outbox.Job{Effect: e, Kind: domain.EffectRefund})
	require.ErrorContains(t, err, "the key belongs to another send")
	require.Zero(t, b.sent("refunds.create"))
}

// Processes that store the same transactions at once, in whatever order they were listed, do not wait for each other in a circle (G8).
func TestTransactions_StoredAtOnceInAnyOrder(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for round := range 5 {
		var listed []payments.Transaction
		for i := range 300 {
			listed = append(listed, payments.Transaction{
				ID: fmt.Sprintf("txn_%d_%03d", round, i), Type: "charge", Category: "charge", Amount: domain.Money{Amount: 100, Currency: "EUR"}, Net: 100,
				Created: time.Now(), Available: time.Now(),
			})
		}
		reversed := slices.Clone(listed)
		slices.Reverse(reversed)
		errs := make([]error, 2)
		together(2, func(i int) {
			errs[i] = payments.StoreTransactions(b.ctx, b.db.Pool, [][]payments.Transaction{listed, reversed}[i])
		})
		require.NoError(t, errs[0])
		require.NoError(t, errs[1])
	}
	require.Equal(t, 1500, b.transactions())
}
