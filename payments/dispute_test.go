package payments_test

import (
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/internal/postgres"
	"holdfast/payments"
)

// balance is what is left of a booking's payment, as everybody here reckons it.
func (b *bed) balance(id domain.BookingID) payments.Balance {
	b.Helper()
	var batch pgx.Batch
	var balance payments.Balance
	payments.ReadBalance(&batch, id, &balance)
	require.NoError(b, postgres.Send(b.ctx, b.db.Pool, &batch))
	return balance
}

// What is left of a payment is what was taken, less what went back or may still, less what a dispute has taken; never below
// zero, and each cent counted once (G8).
func TestBalance_CountsOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.book("pm_card_visa")
	b.work(b.engine(), id, domain.EffectCharge)
	b.exec(`DROP INDEX refunds_payment_id_late_success_key`) // of two refunds in one row of the table
	effects := []domain.EffectID{b.effect(id, domain.EffectCharge), b.effect(id, domain.EffectPublish)}
	type refund struct {
		amount int
		status string
	}
	type dispute struct {
		amount    int
		status    string
		withdrawn bool
	}
	eur := func(amount int, status string, withdrawn bool) []dispute {
		return []dispute{{amount, status, withdrawn}}
	}
	for i, tt := range []struct {
		refunds    []refund
		disputes   []dispute
		refundable int64
		contested  bool
	}{
		{nil, nil, 2500, false},
		{[]refund{{1000, "succeeded"}}, nil, 1500, false},
		{[]refund{{1000, "pending"}}, nil, 1500, false},
		{[]refund{{1000, "failed"}, {300, "succeeded"}}, nil, 2200, false},
		{nil, eur(2500, "needs_response", true), 0, true},
		{nil, eur(1000, "needs_response", false), 1500, true}, // about to be taken
		{nil, eur(1000, "on_the_moon", false), 1500, true},
		{nil, eur(2500, "warning_needs_response", false), 2500, false},
		{nil, eur(2500, "warning_closed", false), 2500, false},
		{nil, eur(2500, "won", true), 0, false}, // not given back yet
		{nil, eur(2500, "won", false), 2500, false},
		{nil, eur(1000, "lost", true), 1500, false},
		{[]refund{{1000, "succeeded"}}, eur(2500, "lost", true), 0, false},
		{[]refund{{1000, "succeeded"}}, eur(1500, "lost", true), 0, false},
		{[]refund{{1000, "succeeded"}}, eur(1000, "lost", true), 500, false},
		{nil, []dispute{{1000, "lost", true}, {500, "under_review", true}}, 1000, true},
		{nil, []dispute{{1000, "lost", true}, {1500, "won", false}}, 1500, false},
	} {
		b.exec(`TRUNCATE refunds, disputes, provider_calls`)
		for n, r := range tt.refunds {
			b.exec(`
				INSERT INTO refunds (id, payment_id, effect_id, amount, currency, reason, status, created_at, updated_at)
				SELECT gen_random_uuid(), id, $2, $3, 'EUR', 'late_success', $4, now(), now() FROM payments WHERE booking_id = $1`,
				id, effects[n], r.amount, r.status)
		}
		for n, d := range tt.disputes {
			b.exec(`
				INSERT INTO disputes (id, payment_id, amount, currency, reason, status, withdrawn, opened_at, created_at, updated_at)
				SELECT $2, id, $3, 'EUR', 'fraudulent', $4, $5, now(), now(), now() FROM payments WHERE booking_id = $1`,
				id, fmt.Sprint("dp_", n), d.amount, d.status, d.withdrawn)
		}
		balance := b.balance(id)
		require.Equal(t, []any{tt.refundable, tt.contested}, []any{balance.Refundable, balance.Contested}, "%d: %+v", i, tt)
	}
	b.exec(`UPDATE disputes SET currency = 'USD'`)
	require.Zero(t, b.balance(id).Refundable, "what is not to be compared counts as all of it")
}
