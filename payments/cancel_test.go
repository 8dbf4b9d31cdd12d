package payments_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/internal/bookings"
	"holdfast/payments"
	"holdfast/payments/stripesim"
)

// cancel asks for a cancellation and returns the answer's status: 200 done, 409 refused.
func (b *bed) cancel(id domain.BookingID, key string, expected ...domain.Money) int {
	b.Helper()
	status, err := b.insist(id, key, expected...)
	require.NoError(b, err)
	return status
}

// insist asks until it is decided, as a client does: on a busy machine the same request may have to be sent again.
func (b *bed) insist(id domain.BookingID, key string, expected ...domain.Money) (status int, err error) {
	desk := b.cards(payments.CardLimits{})
	for deadline := time.Now().Add(time.Minute); ; {
		answer, err := cancelAt(b.ctx, desk, payments.Ask{Client: b.client, Booking: id, Key: key}, expected...)
		if !errors.Is(err, domain.ErrBusy) && !errors.Is(err, bookings.ErrInProgress) || time.Now().After(deadline) {
			return answer.Status, err
		}
	}
}

func cancelAt(ctx context.Context, desk *payments.Desk, a payments.Ask, expected ...domain.Money) (bookings.Response, error) {
	var refund *domain.Money
	if len(expected) > 0 {
		refund = &expected[0]
	}
	return desk.Cancel(ctx, a, refund, func(v payments.View, c payments.Cancellation) (int, []byte, error) {
		if c.Outcome == payments.CancelTooLate || c.Outcome == payments.CancelRefused {
			return 409, []byte(c.Outcome), nil
		}
		return 200, fmt.Appendf(nil, "%s %s %s", c.Outcome, v.Booking.Status, c.Refund), nil
	})
}

// confirmed is a booking whose charge has succeeded.
func (b *bed) confirmed(method ...string) domain.BookingID {
	b.Helper()
	id := b.book(append(method, "pm_card_visa")[0])
	b.work(b.engine(), id, domain.EffectCharge)
	b.reconcile(b.engine(), id) // on a busy machine an answer may have come too late
	booking, _, _ := b.statuses(id)
	require.Equal(b, "confirmed", booking, b.tale(id))
	return id
}

// policy sets the policy of the bookings to come.
func (b *bed) policy(steps string) {
	b.Helper()
	b.exec(`UPDATE resources SET refund_policy = $1`, steps)
}

// back is what our own rows give back of a booking because it was cancelled: the sum and the number of refunds.
func (b *bed) back(id domain.BookingID) (sum, n int64) {
	b.Helper()
	require.NoError(b, b.db.Pool.QueryRow(b.ctx, `
		SELECT coalesce(sum(r.amount), 0), count(*) FROM refunds r JOIN payments p ON p.id = r.payment_id
		 WHERE p.booking_id = $1 AND r.reason = 'cancellation' AND r.status <> 'failed'`, id).Scan(&sum, &n))
	return sum, n
}

// cancelled checks that a booking is over at its customer's wish, its slot free, told once, and that just so much of what was
// taken goes back, once: by our rows, and, once every refund is made, by the provider's own ledger.
func (b *bed) cancelled(id domain.BookingID, back int64) {
	b.Helper()
	booking, payment, taken := b.statuses(id)
	require.Equal(b, []any{"cancelled", false}, []any{booking, taken}, b.tale(id))
	charges := b.charges(id)
	require.Equal(b, payment == "succeeded", len(charges) == 1, b.tale(id))
	sum, n := b.back(id)
	require.Equal(b, []int64{back, min(back, 1)}, []int64{sum, n}, b.tale(id))
	var told struct {
		N      int
		Amount int64
		Reason string
	}
	require.NoError(b, b.db.Pool.QueryRow(b.ctx, `
		SELECT count(*), coalesce(max((payload #>> '{refund,amount,amount}')::bigint), 0), coalesce(max(payload #>> '{refund,reason}'), '')
		  FROM outbox WHERE booking_id = $1 AND event_type = 'cancelled'`, id).Scan(&told.N, &told.Amount, &told.Reason))
	require.Equal(b, []any{1, back}, []any{told.N, told.Amount}, b.tale(id))
	var refunded int64
	if back > 0 {
		require.Equal(b, "cancellation", told.Reason)
		require.Equal(b, "done", b.healRefund(id))
	}
	for _, r := range b.refunds(id) {
		refunded += r.Amount
	}
	require.Equal(b, back, refunded, "the provider's ledger")
	b.oneKeyEach(id)
}

// A customer cancels while the charge is under way (G3, G4): twenty bookings, each cancelled at the moment at which it is
// charged. Expected: cancelled, whichever came first, and either proved uncharged or the money back.
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
			statuses[i/2], _ = b.insist(id, "stop")
		}
	})
	for i, id := range ids {
		b.reconcile(p, id)
		require.Equal(t, 200, statuses[i])
		b.cancelled(id, int64(2500*len(b.charges(id))))
	}
}

// A success that the fence finds after the customer has cancelled: cancelled all the same, and the money goes back by the policy
// as of the moment at which the customer asked, though the start has passed by the time of the proof. So it is for a booking
// that was ending already when the customer cancelled it, and asking again changes nothing.
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
			b.policy(`[{"hours_before": 24, "percent": 50}]`)
			id := b.book("pm_card_visa")
			b.sim.AddFault(stripesim.Fault{Operation: "payment_intents.confirm", Fault: "reset_after", Times: -1})
			b.work(b.engine(), id, domain.EffectCharge)
			before(b, id)
			require.Equal(t, 200, b.cancel(id, "stop", domain.Money{Amount: 1250, Currency: "EUR"}))
			_, _, taken := b.statuses(id)
			require.True(t, taken, "G4: asked for is not proved")
			b.exec(`UPDATE bookings SET during = tstzrange(clock_timestamp() - interval '1 minute', clock_timestamp() + interval '1 hour') WHERE id = $1`, id)
			require.Equal(t, 200, b.cancel(id, "and again", domain.Money{Amount: 1250, Currency: "EUR"}))
			require.Equal(t, 409, b.cancel(id, "for another refund", domain.Money{Currency: "EUR"}))
			b.work(b.engine(), id, domain.EffectCancel)
			b.reconcile(b.engine(), id)
			require.Len(t, b.charges(id), 1)
			b.cancelled(id, 1250)
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
