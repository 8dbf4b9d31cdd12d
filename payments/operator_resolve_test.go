package payments_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/internal/postgres"
	"holdfast/outbox"
	"holdfast/payments"
	"holdfast/payments/stripesim"
)

type handInHand func(ctx context.Context, tx pgx.Tx, e outbox.Effect, r payments.Reading) (string, error)

// decide does what an operator's desk does: read the provider, then decide in a transaction, which is committed even if the act is
// refused, as one that stores the refusal is.
func (b *bed) decide(p *payments.Payments, e domain.EffectID, act handInHand) (said string, refusal *outbox.RefusedError) {
	b.Helper()
	effect, err := outbox.Load(b.ctx, b.db.Pool, e)
	require.NoError(b, err)
	reading, err := p.Read(b.ctx, effect)
	require.NoError(b, err)
	return b.decideOn(effect, reading, act)
}

func (b *bed) decideOn(e outbox.Effect, r payments.Reading, act handInHand) (said string, refusal *outbox.RefusedError) {
	b.Helper()
	err := postgres.InTx(b.ctx, b.db.Pool, func(tx pgx.Tx) error {
		var err error
		said, err = act(b.ctx, tx, e, r)
		if errors.As(err, &refusal) {
			return nil
		}
		return err
	})
	require.NoError(b, err)
	return said, refusal
}

// lostConfirm is a booking whose charge has gone through without an answer. Its effect is made to stand as it is told.
func (b *bed) lostConfirm(status string) (domain.BookingID, domain.EffectID) {
	b.Helper()
	id := b.book("pm_card_visa")
	b.sim.AddFault(stripesim.Fault{Operation: "payment_intents.confirm", Fault: "error_503_after"})
	b.runOnceCharge(b.engine(), id)
	require.Len(b, b.charges(id), 1)
	e := b.effect(id, domain.EffectCharge)
	b.exec(`UPDATE outbox SET status = $2 WHERE id = $1`, e, status)
	return id, e
}

// What the provider shows is adopted, from every state that is not finished (G3, G7): the charge that was taken is settled, once.
func TestResolve_AdoptsALostCharge(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.patient()
	for _, status := range []string{"pending", "in_doubt", "parked"} {
		id, e := b.lostConfirm(status)
		said, refusal := b.decide(b.engine(), e, b.engine().ResolveIn)
		require.Nil(t, refusal)
		require.Contains(t, said, "25.00 EUR taken once")
		require.Contains(t, said, "the booking is confirmed")
		b.agree(id)
		_, refusal = b.decide(b.engine(), e, b.engine().ResolveIn)
		require.NotNil(t, refusal, "twice")
		require.Contains(t, refusal.Reason, "finished")
	}
}

// A question that stays open is refused, in words that say what the provider shows and what comes next; nothing is written (G4).
func TestResolve_AnOpenQuestionStaysOpen(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.patient()
	for _, status := range []string{"pending", "in_doubt", "parked"} {
		id := b.book("pm_card_visa")
		b.sim.AddFault(stripesim.Fault{Operation: "payment_intents.confirm", Fault: "error_503"})
		b.runOnceCharge(b.engine(), id)
		e := b.effect(id, domain.EffectCharge)
		b.exec(`UPDATE outbox SET status = $2 WHERE id = $1`, e, status)
		before := b.tale(id).String()
		_, refusal := b.decide(b.engine(), e, b.engine().ResolveIn)
		require.NotNil(t, refusal)
		require.Contains(t, refusal.Reason, "not confirmed: no money was taken so far")
		require.Contains(t, refusal.Reason, map[string]string{"pending": "A worker goes on", "in_doubt": "The reconciler asks", "parked": "stays parked"}[status])
		require.Equal(t, before, b.tale(id).String())
	}
}

// What was read before something else was sent proves nothing but what is final (G3).
func TestResolve_AStaleReadingProvesNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.patient()
	id := b.book("pm_card_chargeDeclined")
	b.sim.AddFault(stripesim.Fault{Operation: "payment_intents.confirm", Fault: "error_503_after", Times: 2})
	b.runOnceCharge(b.engine(), id)
	e, err := outbox.Load(b.ctx, b.db.Pool, b.effect(id, domain.EffectCharge))
	require.NoError(t, err)
	reading, err := b.engine().Read(b.ctx, e)
	require.NoError(t, err)
	b.pause(b.config.Backoff * 4)
	b.runOnceCharge(b.engine(), id) // another send of the same key
	before := b.tale(id).String()
	_, refusal := b.decideOn(e, reading, b.engine().ResolveIn)
	require.NotNil(t, refusal)
	require.Contains(t, refusal.Reason, "look again")
	require.Equal(t, before, b.tale(id).String())
}

// A charge that is parked because the provider's intent is not what was asked for is taken up only once a reading proves that it is
// (G3, G8).
func TestResolve_AForeignIntentNeedsProof(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.patient()
	id := b.book("pm_card_visa")
	foreign := &spoilt{stalled{Gateway: b.gateway, afterSend: func(c payments.Call, out payments.Outcome) payments.Outcome {
		if c.Operation == domain.OpCreate {
			out.Intent.Amount.Amount++
		}
		return out
	}}}
	b.work(b.engineOn(foreign), id, domain.EffectCharge)
	e := b.effect(id, domain.EffectCharge)
	_, refusal := b.decide(b.engineOn(foreign), e, b.engineOn(foreign).ResolveIn)
	require.NotNil(t, refusal)
	require.Contains(t, refusal.Reason, "it is not taken up")
	require.Empty(t, b.intent(id))

	said, refusal := b.decide(b.engine(), e, b.engine().ResolveIn)
	require.Nil(t, refusal)
	require.Contains(t, said, "is taken up")
	require.NotEmpty(t, b.intent(id))
	b.reconcile(b.engine(), id)
	b.agree(id)
	require.Len(t, b.charges(id), 1)
}

// spoilt is a provider that shows every listed intent with another amount.
type spoilt struct{ stalled }

func (s *spoilt) IntentsCreated(ctx context.Context, from, to time.Time) ([]payments.Intent, error) {
	found, err := s.Gateway.IntentsCreated(ctx, from, to)
	for i := range found {
		found[i].Amount.Amount++
	}
	return found, err
}

// A fence whose answer was lost, and a refund whose answer was lost, are adopted alike (G4, G5).
func TestResolve_FencesAndRefunds(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.patient()
	for _, status := range []string{"pending", "in_doubt", "parked"} {
		id := b.declined()
		b.expire(id)
		_, err := b.engine().SweepHold(b.ctx)
		require.NoError(t, err)
		fence := outbox.Job{Effect: b.effect(id, domain.EffectCancel)}
		_, refusal := b.decide(b.engine(), fence.Effect, b.engine().ResolveIn)
		require.NotNil(t, refusal, "an intent that may still be paid")
		b.sim.AddFault(stripesim.Fault{Operation: "payment_intents.cancel", Fault: "error_503_after"})
		_, err = b.engine().Fence(b.ctx, fence)
		require.NoError(t, err)
		b.exec(`UPDATE outbox SET status = $2 WHERE id = $1`, fence.Effect, status)
		said, refusal := b.decide(b.engine(), fence.Effect, b.engine().ResolveIn)
		require.Nil(t, refusal)
		require.Contains(t, said, "never taken: the booking is expired")
		b.agree(id)

		paid := b.paidFor()
		e, _ := b.ask(paid, "key"+status, 1000)
		_, refusal = b.decide(b.engine(), e, b.engine().ResolveIn)
		require.NotNil(t, refusal)
		require.Contains(t, refusal.Reason, "lists nothing that decides this refund of 10.00 EUR")
		b.sim.AddFault(stripesim.Fault{Operation: "refunds.create", Fault: "error_503_after"})
		_, err = b.engine().Refund(b.ctx, outbox.Job{Effect: e})
		require.NoError(t, err)
		b.exec(`UPDATE outbox SET status = $2 WHERE id = $1`, e, status)
		said, refusal = b.decide(b.engine(), e, b.engine().ResolveIn)
		require.Nil(t, refusal)
		require.Contains(t, said, "10.00 EUR went back")
		b.booksAgree(paid)
	}
}

// Several persons and a worker at once (G3, G7): one settles it, everybody else is told so, and the money was taken once.
func TestResolve_ManyAtOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.patient()
	for range 5 {
		id, e := b.lostConfirm("in_doubt")
		var all sync.WaitGroup
		var mu sync.Mutex
		settled := 0
		for range 3 {
			all.Go(func() {
				if _, refusal := b.decide(b.engine(), e, b.engine().ResolveIn); refusal == nil {
					mu.Lock()
					defer mu.Unlock()
					settled++
				}
			})
		}
		all.Go(func() { _, _ = b.engine().ResolveDoubt(b.ctx) })
		all.Wait()
		require.LessOrEqual(t, settled, 1)
		b.agree(id)
	}
}
