package payments_test

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/outbox"
	"holdfast/payments/stripesim"
)

// together runs n functions at once and waits for all.
func together(n int, f func(i int)) {
	var group sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		group.Go(func() {
			<-start
			f(i)
		})
	}
	close(start)
	group.Wait()
}

// TestIncident02 for jobs: eight workers, each in a deployment of its own, run the same charge at once, while answers
// are lost. Expected: one charge, one confirm key, one confirmed event (G3, G7).
func TestIncident02_ManyWorkersOneCharge(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.book("pm_card_visa")
	b.sim.AddFault(stripesim.Fault{Operation: "payment_intents.*", Fault: "reset_after", Nth: 2, Times: 4})
	job := outbox.Job{Effect: b.effect(id, domain.EffectCharge)}
	together(8, func(int) {
		p := b.engine()
		for range 10 {
			verdict, err := p.Charge(b.ctx, job)
			if err != nil || verdict.After == 0 {
				return
			}
			b.pause(verdict.After)
		}
	})
	b.work(b.engine(), id, domain.EffectCharge)
	b.reconcile(b.engine(), id)
	b.agree(id)
	booking, _, _ := b.statuses(id)
	require.Equal(t, "confirmed", booking)
	require.Len(t, b.confirmKeys(), 1)
}

// The hold ends while the charge runs: expiry and payment contend for the booking's row (G2, G4). Twenty bookings, each
// charged and swept at the same moment. Expected: each is confirmed and charged, or expired and provably not.
func TestRace_ExpiryAgainstCharge(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ids := make([]domain.BookingID, 20)
	for i := range ids {
		ids[i] = b.book("pm_card_visa")
	}
	p := b.engine()
	together(len(ids)+1, func(i int) {
		if i == len(ids) {
			for range 200 {
				_, _ = p.SweepHold(b.ctx)
			}
			return
		}
		_, err := b.db.Pool.Exec(b.ctx, `UPDATE bookings SET hold_expires_at = clock_timestamp() + $2 * interval '1 millisecond' WHERE id = $1`, ids[i], 2*i)
		if err == nil {
			_, _ = p.Charge(b.ctx, outbox.Job{Effect: b.effect(ids[i], domain.EffectCharge)})
		}
	})
	for _, id := range ids {
		b.reconcile(p, id)
		require.Eventually(t, func() bool {
			b.reconcile(p, id)
			booking, _, _ := b.statuses(id)
			return booking != "held" && booking != "ending"
		}, time.Minute, 5*time.Millisecond, b.tale(id))
		b.agree(id)
	}
}

// Four reconcilers share twenty doubts: each is ended once, and by reading (G5). Expected: twenty charges, twenty
// confirmed, and no confirm beyond those that the workers sent.
func TestReconcilers_ShareTheWork(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.patient()
	b.config.MaxSends = 2
	b.config.Lease = time.Hour
	b.sim.AddFault(stripesim.Fault{Operation: "payment_intents.confirm", Fault: "reset_after", Times: -1})
	ids := make([]domain.BookingID, 20)
	for i := range ids {
		ids[i] = b.book("pm_card_visa")
		b.work(b.engine(), ids[i], domain.EffectCharge)
	}
	b.sim.ClearFaults()
	before := len(b.sim.Journal(0))
	together(4, func(int) {
		p := b.engine()
		for {
			worked, err := p.ResolveDoubt(b.ctx)
			if err != nil || !worked {
				return
			}
		}
	})
	for _, id := range ids {
		b.agree(id)
	}
	require.Len(t, b.sim.Journal(0), before+len(ids), "each doubt is one read")
}

func (b *bed) confirmKeys() map[string]bool {
	keys := map[string]bool{}
	for _, e := range b.sim.Journal(0) {
		if e.Operation == "payment_intents.confirm" {
			keys[e.IdempotencyKey] = true
		}
	}
	return keys
}
