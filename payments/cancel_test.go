package payments_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/payments"
	"holdfast/payments/stripesim"
)

// cancel asks for a cancellation and returns the answer's status: 200 done, 409 not done.
func (b *bed) cancel(id domain.BookingID, key string) int {
	b.Helper()
	answer, err := b.cards(payments.CardLimits{}).Cancel(b.ctx, payments.Ask{Client: b.client, Booking: id, Key: key},
		func(v payments.View, done bool) (int, []byte, error) {
			if done {
				return 200, []byte(v.Booking.Status), nil
			}
			return 409, nil, nil
		})
	require.NoError(b, err)
	return answer.Status
}

// A customer cancels while the charge is under way (G3, G4): twenty bookings, each cancelled at the moment at which it is
// charged. Expected: cancelled, and either proved uncharged or the money on its way back; or confirmed, if the charge was
// settled first, and the cancellation says so.
func TestCancel_AgainstTheCharge(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ids := make([]domain.BookingID, 20)
	for i := range ids {
		ids[i] = b.book("pm_card_visa")
	}
	p := b.engine()
	statuses := make([]int, len(ids))
	together(2*len(ids), func(i int) {
		if id := ids[i/2]; i%2 == 0 {
			_, _ = p.Charge(b.ctx, b.job(id))
		} else {
			statuses[i/2] = b.cancel(id, "stop")
		}
	})
	for i, id := range ids {
		b.reconcile(p, id)
		booking, _, taken := b.statuses(id)
		paid := len(b.charges(id))
		require.LessOrEqual(t, paid, 1)
		var back int
		b.scan(`SELECT count(*) FROM outbox WHERE booking_id = $1 AND kind = 'refund'`, &back, id)
		switch booking {
		case "confirmed":
			require.Equal(t, []any{409, 1, true, 0}, []any{statuses[i], paid, taken, back}, b.tale(id))
		case "cancelled":
			require.Equal(t, []any{200, false, paid}, []any{statuses[i], taken, back}, "money was kept for a cancelled booking\n%s", b.tale(id))
		default:
			require.Failf(t, "not ended", "%s\n%s", booking, b.tale(id))
		}
	}
}

// A success that the fence finds after the customer has cancelled: cancelled all the same, and the money goes back. So it
// is for a booking that was ending already when the customer cancelled it.
func TestCancel_TheMoneyWasTaken(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]func(b *bed, id domain.BookingID){
		"held": func(*bed, domain.BookingID) {},
		"ending": func(b *bed, id domain.BookingID) {
			b.expire(id)
			_, err := b.engine().SweepHold(b.ctx)
			require.NoError(b, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.config.MaxSends = 2
			id := b.book("pm_card_visa")
			b.sim.AddFault(stripesim.Fault{Operation: "payment_intents.confirm", Fault: "reset_after", Times: -1})
			b.work(b.engine(), id, domain.EffectCharge)
			before(b, id)
			require.Equal(t, 200, b.cancel(id, "stop"))
			b.work(b.engine(), id, domain.EffectCancel)
			b.reconcile(b.engine(), id)
			booking, payment, taken := b.statuses(id)
			require.Equal(t, []any{"cancelled", "succeeded", false}, []any{booking, payment, taken}, b.tale(id))
			require.Len(t, b.charges(id), 1)
			var back int
			b.scan(`SELECT count(*) FROM outbox WHERE booking_id = $1 AND kind = 'refund'`, &back, id)
			require.Equal(t, 1, back, "the money does not go back")
			require.NotContains(t, b.events(id), "confirmed")
			require.Equal(t, "done", b.healRefund(id))
			require.Len(t, b.refunds(id), 1)
			require.Equal(t, []string{"held", "cancelled", "refunded"}, b.events(id))
		})
	}
}

// A cancelled booking proved uncharged: its slot is sold again, and its intent can take no money any more.
func TestCancel_OfADeclinedBooking(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.declined()
	require.Equal(t, 200, b.cancel(id, "stop"))
	b.work(b.engine(), id, domain.EffectCancel)
	b.agree(id)
	booking, _, _ := b.statuses(id)
	require.Equal(t, "cancelled", booking)
	require.Equal(t, []string{"held", "payment_declined", "cancelled"}, b.events(id))
	require.Equal(t, 409, b.change(id, "second", "pm_card_visa"), "no other card for what is over")
}
