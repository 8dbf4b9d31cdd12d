package operator_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/internal/bookings"
	"holdfast/internal/operator"
	"holdfast/outbox"
	"holdfast/payments/stripesim"
)

// bookingThat makes a booking that stands as the published table says.
func (b *moneyBed) bookingThat(stands string) domain.BookingID {
	b.Helper()
	if stands == "held, not paid" {
		return b.book("pm_card_visa")
	}
	if stands == "cancelled, and refunded by its policy in part" {
		b.exec(`UPDATE resources SET refund_policy = '[{"hours_before": 0, "percent": 40}]'`)
		defer b.exec(`UPDATE resources SET refund_policy = '[{"hours_before": 0, "percent": 100}]'`)
	}
	id := b.confirmed()
	switch stands {
	case "paid":
	case "paid, and refunded in part":
		b.ask(id, 1000)
		b.work(id, domain.EffectRefund)
	case "paid, and refunded in full":
		b.ask(id, 2500)
		b.work(id, domain.EffectRefund)
	case "paid, and in dispute":
		b.happens(stripesim.Action{Action: "open_dispute", PaymentIntent: b.intent(id)})
		b.hear("charge.dispute.created", b.intent(id))
	case "cancelled, and refunded by its policy in part":
		b.cancel(id)
		b.work(id, domain.EffectRefund)
	default:
		require.Fail(b, "no such booking", stands)
	}
	return id
}

// The published table of refunds, row by row, through the desk (G3, G7, G8): previewed, refused or begun exactly as published; one audit
// row if it was begun, none otherwise; all of what is left goes back, and never more than was taken.
func TestOperators_ThePublishedRefunds(t *testing.T) {
	t.Parallel()
	b := newMoneyBed(t)
	rows := published(t, "refunds")
	require.Len(t, rows, 6)
	for _, row := range rows {
		name := row["booking"]
		id := b.bookingThat(name)
		before, audited := b.tale(id), b.audited(id)
		on := operator.Target{Booking: id}
		seen, err := b.operators().Preview(b.ctx, operator.Refund, on, 0)
		require.NoError(t, err, name)
		require.Equal(t, before, b.tale(id), "%s: a preview changes nothing", name)
		require.Equal(t, row["refund"] == "yes", seen.Allowed, "%s: %s", name, seen.Refusal)
		require.NotNil(t, seen.Provider, name)
		done, err := b.operators().Do(b.ctx, operator.Order{Act: operator.Refund, On: on, By: "ops@example.org", Reason: name})
		var refused *outbox.RefusedError
		if row["refund"] == "no" {
			require.ErrorAs(t, err, &refused, name)
			require.Equal(t, outbox.RefusedRefund, refused.Code)
			require.Equal(t, seen.Refusal, refused.Reason)
			require.Equal(t, before, b.tale(id), name)
			require.Equal(t, audited, b.audited(id), name)
			continue
		}
		require.NoError(t, err, name)
		require.Equal(t, seen.Would, done.Said)
		require.Equal(t, audited+1, b.audited(id), name)
		b.heal(id)
		var back int64
		for _, r := range b.sim.Ledger().Refunds {
			if r.PaymentIntent == b.intent(id) {
				back += r.Amount
			}
		}
		require.Equal(t, int64(2500), back, name)
		_, err = b.operators().Do(b.ctx, operator.Order{Act: operator.Refund, On: on, By: "ops@example.org", Reason: "again"})
		require.ErrorAs(t, err, &refused, "nothing is left")
	}
	require.NoError(t, b.sim.Ledger().Check())
}

// A refund is begun once for its key, and its stored answer is replayed; the answer of a refusal, too (G1).
func TestOperators_RefundOnceForItsKey(t *testing.T) {
	t.Parallel()
	b := newMoneyBed(t)
	id := b.confirmed()
	once := func(key string, amount int64) bookings.Response {
		answer, err := b.operators().DoOnce(b.ctx, bookings.Keyed{Client: b.client, Route: "/refunds/" + id.String(), Key: key, Meaning: amount},
			operator.Order{Act: operator.Refund, On: operator.Target{Booking: id}, By: "ops@example.org", Reason: "too loud", Amount: amount},
			func(r operator.Result, refused *outbox.RefusedError) (int, []byte, error) {
				require.NotNil(t, r.Refund, "what was decided is told, if it was refused, too")
				require.Equal(t, r.Refund.Refund == nil, refused != nil)
				if r.Refund.Refund == nil {
					return 409, []byte(r.Refund.Refusal), nil
				}
				return 201, []byte(r.Refund.Refund.ID.String()), nil
			})
		require.NoError(t, err)
		return answer
	}
	first, again := once("one", 2000), once("one", 2000)
	require.Equal(t, 201, first.Status)
	require.True(t, again.Replayed)
	require.Equal(t, first.Body, again.Body)
	require.Equal(t, 409, once("two", 1000).Status)
	require.Equal(t, "refund_exceeds_captured", string(once("two", 1000).Body))
	require.Equal(t, 1, b.audited(id))
	require.Equal(t, 1, b.count(`SELECT count(*) FROM refunds`))
	_, err := b.operators().Do(b.ctx, operator.Order{Act: operator.Refund, On: operator.Target{Booking: domain.NewID[domain.BookingID]()}, By: "x", Reason: "y"})
	require.ErrorIs(t, err, domain.ErrNotFound)
	_, err = b.operators().Do(b.ctx, operator.Order{Act: operator.Refund, By: "x", Reason: "y"})
	var invalid *domain.ValidationError
	require.ErrorAs(t, err, &invalid)
}
