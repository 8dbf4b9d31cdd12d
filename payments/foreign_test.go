package payments_test

import (
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/outbox"
	"holdfast/payments"
)

// What the provider made is not what was asked for (G3, G8): another amount, currency, mode, booking or payment. Nothing
// of it is confirmed, its id is not committed, and a person is asked. Expected after the replay, when the provider's answer
// to the same key is right: one create key, confirmed with one charge.
func TestCharge_AForeignIntentIsParked(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(*payments.Intent){
		"amount":   func(i *payments.Intent) { i.Amount.Amount++ },
		"currency": func(i *payments.Intent) { i.Amount.Currency = "USD" },
		"mode":     func(i *payments.Intent) { i.Livemode = true },
		"booking":  func(i *payments.Intent) { i.BookingID = i.PaymentID },
		"payment":  func(i *payments.Intent) { i.PaymentID = i.BookingID },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			id := b.book("pm_card_visa")
			gateway := &stalled{Gateway: b.gateway, afterSend: func(c payments.Call, out payments.Outcome) payments.Outcome {
				if c.Operation == domain.OpCreate {
					spoil(out.Intent)
				}
				return out
			}}
			b.work(b.engineOn(gateway), id, domain.EffectCharge)
			parked, err := outbox.Load(b.ctx, b.db.Pool, b.effect(id, domain.EffectCharge))
			require.NoError(t, err)
			require.Equal(t, domain.EffectParked, parked.Status, b.tale(id))
			require.Contains(t, parked.LastError, "differs from what was sent")
			require.Empty(t, b.intent(id), "a foreign intent was adopted")
			require.Empty(t, b.charges(id))

			_, err = outbox.Replay(b.ctx, b.db.Pool, parked.ID, "ops@example.org", "the provider has mended it")
			require.NoError(t, err)
			b.work(b.engine(), id, domain.EffectCharge)
			b.agree(id)
			var creates int
			b.scan(`SELECT count(*) FROM provider_calls c JOIN payments p ON p.id = c.payment_id WHERE p.booking_id = $1 AND operation = 'create'`, &creates, id)
			require.Equal(t, 1, creates)
		})
	}
}

// Another sum was taken than was asked for (G8): somebody with the account's key has changed the intent. The money has moved, so
// the booking is confirmed, and a person is told in the log.
func TestCharge_AnotherSumIsToldAPerson(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.patient()
	id := b.book("pm_card_visa")
	log := &told{}
	gateway := &stalled{Gateway: b.gateway, afterSend: func(c payments.Call, out payments.Outcome) payments.Outcome {
		if c.Operation == domain.OpConfirm {
			out.Intent.AmountReceived = 100
		}
		return out
	}}
	p := payments.New(b.db.Pool, gateway, noWaker{}, b.config, slog.New(slog.NewJSONHandler(log, nil)))
	b.work(p, id, domain.EffectCharge)
	b.agree(id)
	require.Contains(t, log.String(), `"level":"ERROR","msg":"another sum was taken than was asked for`)
	var received int64
	b.scan(`SELECT amount_received FROM payments WHERE booking_id = $1`, &received, id)
	require.Equal(t, int64(100), received)
}
