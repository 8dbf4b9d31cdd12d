package payments_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/internal/bookings"
	"holdfast/payments/stripesim"
)

const shortHold = 1500 * time.Millisecond

// Incident 08 (G2, G3, G4, G8): the provider's success falls a little before the hold's end, on it, a little after it, while
// the reconciler works and a rival asks for the slot again and again; by the customer at the bank's page, and by a confirm
// that the provider carries out long after we have left. Expected: A is confirmed and has paid once, or A has ended with a
// proven zero and the slot may be B's; never both, and nobody who has ended has paid.
func TestIncident08_SuccessAroundTheEndOfTheHold(t *testing.T) {
	t.Parallel()
	for _, offset := range []time.Duration{-100 * time.Millisecond, 0, 100 * time.Millisecond} {
		t.Run(fmt.Sprintf("customer %s", offset), func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			a := b.bookForShort("pm_card_authenticationRequired")
			b.work(b.engine(), a, domain.EffectCharge)
			require.Equal(t, []string{"held", "action_required"}, b.events(a))
			b.aroundTheEnd(a, func(ctx context.Context) {
				wait(ctx, b.untilEnd(a)+offset)
				_, _ = b.sim.Act(stripesim.Action{Action: "authenticate", PaymentIntent: b.intent(a)}) // refused if it was fenced
			})
		})
		t.Run(fmt.Sprintf("slow confirm %s", offset), func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			a := b.bookForShort("pm_card_visa")
			b.sim.AddFault(stripesim.Fault{
				Operation: "payment_intents.confirm", Fault: "slow", DelayMS: int((b.untilEnd(a) + offset).Milliseconds()),
			})
			b.aroundTheEnd(a, func(context.Context) { b.work(b.engine(), a, domain.EffectCharge) })
		})
	}
}

// The same 30 s after the end, when the slot is B's already: the provider has hidden the charge, and it goes through after
// A has ended. Expected: B keeps the slot, A stays ended, and A's money goes back once, under the refund's own key.
func TestIncident08_SuccessAfterTheSlotWasRebooked(t *testing.T) {
	t.Parallel()
	b := setup(t)
	a, intent := b.hide("pm_card_visa")
	rival := b.bookAt("rival", "pm_card_visa")
	b.work(b.engine(), rival, domain.EffectCharge)
	b.agree(rival)
	b.exec(`UPDATE bookings SET ended_at = ended_at - interval '30 seconds', hold_expires_at = clock_timestamp() - interval '30 seconds' WHERE id = $1`, a)
	b.appear(intent)
	require.Equal(t, "done", b.healRefund(a))
	b.givenBack(a, "1")
	require.NotContains(t, b.events(a), "confirmed")
	b.agree(rival)
	require.Equal(t, []string{"held", "confirmed"}, b.events(rival))
	require.Equal(t, 1, b.taken())
}

// bookForShort accepts a booking whose hold is a moment long.
func (b *bed) bookForShort(method string) domain.BookingID {
	b.Helper()
	r, err := b.bookings.CreateResource(b.ctx, domain.Resource{
		Name: "Court", TimeZone: "Europe/Berlin", Places: 1, UnitMinutes: 60, Price: domain.Money{Amount: 2500, Currency: "EUR"}, Hold: shortHold,
	})
	require.NoError(b, err)
	b.resource = r.ID
	b.config.Poll = 20 * time.Millisecond
	return b.book(method)
}

// untilEnd is how long the hold lives, by the database's clock.
func (b *bed) untilEnd(id domain.BookingID) time.Duration {
	var rest time.Duration
	b.scan(`SELECT hold_expires_at - clock_timestamp() FROM bookings WHERE id = $1`, &rest, id)
	return max(rest, 0)
}

// taken counts how often the slot is taken.
func (b *bed) taken() (n int) {
	b.scan(`SELECT count(*) FROM allocations WHERE active AND resource_id = $1`, &n, b.resource)
	return n
}

func wait(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// aroundTheEnd lets the success happen while the reconciler works and a rival tries to book, and judges what came of it.
func (b *bed) aroundTheEnd(a domain.BookingID, succeed func(ctx context.Context)) {
	b.Helper()
	var all sync.WaitGroup
	var rival bookings.Response
	ended := func() bool {
		booking, _, _ := b.statuses(a)
		return booking != "held" && booking != "ending"
	}
	all.Go(func() { succeed(b.ctx) })
	all.Go(func() {
		r := b.reconciler(b.engine())
		for deadline := time.Now().Add(time.Minute); !ended() && time.Now().Before(deadline); wait(b.ctx, 10*time.Millisecond) {
			_, _ = r.Once(b.ctx)
			if b.fenced(a) {
				b.work(b.engine(), a, domain.EffectCancel)
			}
		}
	})
	all.Go(func() { // each time with a key of its own: a refusal is an answer for good
		for i := 0; rival.Status != 201; i++ {
			last := ended()
			rival, _ = b.bookings.Accept(b.ctx, b.client, fmt.Sprint("rival", i), bookings.Request{
				ResourceID: b.resource, Start: b.start, End: b.start.Add(time.Hour), CustomerName: "Eve", CustomerEmail: "eve@example.org",
				PaymentMethod: "pm_card_visa",
			})
			if last || b.taken() > 1 {
				return
			}
			wait(b.ctx, 10*time.Millisecond)
		}
	})
	all.Wait()
	require.Equal(b, 1, b.taken(), "never two, and never none: somebody asks for it\n%s", b.tale(a))
	b.agree(a) // ended: nothing was taken; confirmed: once
	booking, _, _ := b.statuses(a)
	require.Equal(b, booking == "confirmed", rival.Status != 201, "A is %s, and the rival was answered %d", booking, rival.Status)
	require.Equal(b, booking == "confirmed", slices.Contains(b.events(a), "confirmed"))
}

// fenced tells whether a worker has a cancel to carry out.
func (b *bed) fenced(id domain.BookingID) (pending bool) {
	b.scan(`SELECT EXISTS (SELECT FROM outbox WHERE booking_id = $1 AND kind = 'cancel' AND status = 'pending')`, &pending, id)
	return pending
}
