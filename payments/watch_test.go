package payments_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/outbox"
	"holdfast/payments/stripesim"
)

// watch makes every watch due and does them.
func (b *bed) watch() {
	b.Helper()
	b.exec(`UPDATE payments SET watch_at = clock_timestamp() WHERE watch_at IS NOT NULL`)
	p := b.engine()
	for {
		worked, err := p.Watch(b.ctx)
		require.NoError(b, err)
		if !worked {
			return
		}
	}
}

// An intent whose id was lost, of a booking that has ended meanwhile, is found by listing and canceled (G3, design of
// the single confirmable intent). Expected: expired at once, no charge, and no intent left that could be confirmed.
func TestWatch_OrphansAreCanceled(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.book("pm_card_visa")
	b.sim.AddFault(stripesim.Fault{Operation: "payment_intents.create", Fault: "reset_after", Times: -1})
	b.config.MaxSends = 1
	b.work(b.engine(), id, domain.EffectCharge)
	b.sim.ClearFaults()
	b.expire(id)
	worked, err := b.engine().SweepHold(b.ctx)
	require.NoError(t, err)
	require.True(t, worked)
	booking, payment, taken := b.statuses(id)
	require.Equal(t, []any{"expired", "canceled", false}, []any{booking, payment, taken})
	b.watch()
	require.Equal(t, 1, b.sent("payment_intents.cancel"))
	require.Equal(t, 0, b.sent("payment_intents.confirm"))
	intents, err := b.gateway.IntentsCreated(b.ctx, time.Now().Add(-time.Hour), time.Now().Add(time.Hour))
	require.NoError(t, err)
	require.Len(t, intents, 1)
	require.Equal(t, "canceled", string(intents[0].Status))
	b.watch()
	require.Equal(t, 1, b.sent("payment_intents.cancel"), "it is canceled once")
	b.agree(id)
}

// A success that appears after the booking's end is found, and one refund of it is begun (G4, G8). Expected: still failed,
// one charge, one refund effect with its job, however often it is looked at.
func TestWatch_LateSuccessIsFound(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.lateSuccess()
	b.watch()
	require.Len(t, b.charges(id), 1)
	booking, payment, _ := b.statuses(id)
	require.Equal(t, []any{"failed", "succeeded"}, []any{booking, payment}, b.tale(id))
	var begun int
	b.scan(`SELECT count(*) FROM outbox o JOIN river_job j ON j.id = o.job_id WHERE o.booking_id = $1 AND o.kind = 'refund' AND o.status = 'pending'`, &begun, id)
	require.Equal(t, 1, begun)
}

// The same hidden charge, honestly listed: while it is pending the booking ends in neither way, and once it has gone
// through the booking is confirmed (G4). This is what listing after canceling is for.
func TestFence_PendingChargeIsWaitedFor(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.book("pm_card_visa")
	b.sim.AddFault(stripesim.Fault{Operation: "payment_intents.confirm", Fault: "partial_500"})
	p := b.engine()
	b.work(p, id, domain.EffectCharge)
	r := b.reconciler(p)
	_, err := r.Once(b.ctx) // reads, and fences for doubt
	require.NoError(t, err)
	for range 3 {
		verdict, err := p.Fence(b.ctx, outbox.Job{Effect: b.effect(id, domain.EffectCancel)})
		require.NoError(t, err)
		require.Positive(t, verdict.After)
	}
	require.Equal(t, 1, b.sent("payment_intents.cancel"))
	booking, _, taken := b.statuses(id)
	require.Equal(t, []any{"ending", true}, []any{booking, taken}, "the slot stays taken")
	b.sim.Advance(time.Minute)
	b.work(p, id, domain.EffectCancel)
	b.agree(id)
	booking, _, _ = b.statuses(id)
	require.Equal(t, "confirmed", booking)
}

// A customer who must authenticate is followed without anybody telling us (G5).
func TestWatch_AuthenticationIsNoticed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.book("pm_card_authenticationRequired")
	p := b.engine()
	b.work(p, id, domain.EffectCharge)
	booking, payment, _ := b.statuses(id)
	require.Equal(t, []any{"held", "requires_action"}, []any{booking, payment}, b.tale(id))
	var intent string
	b.scan(`SELECT provider_intent_id FROM payments WHERE booking_id = $1`, &intent, id)
	_, err := b.sim.Act(stripesim.Action{Action: "authenticate", PaymentIntent: intent})
	require.NoError(t, err)
	b.watch()
	b.agree(id)
	booking, _, _ = b.statuses(id)
	require.Equal(t, "confirmed", booking)
}
