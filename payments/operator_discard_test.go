package payments_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/outbox"
	"holdfast/payments"
	"holdfast/payments/stripesim"
)

// discard does what the operators' desk does: it closes the effect if nothing can come of it any more.
func (b *bed) discard(e domain.EffectID) (said string, refusal *outbox.RefusedError) {
	b.Helper()
	said, refusal = b.decide(b.engine(), e, b.engine().DiscardIn)
	if refusal == nil {
		b.exec(`UPDATE outbox SET status = 'discarded', finished_at = clock_timestamp() WHERE id = $1`, e)
	}
	return said, refusal
}

// parkedCharge is a charge that is parked: the provider's intent is not what was asked for.
func (b *bed) parkedCharge() (domain.BookingID, domain.EffectID) {
	b.Helper()
	id := b.book("pm_card_visa")
	foreign := &stalled{Gateway: b.gateway, afterSend: func(c payments.Call, out payments.Outcome) payments.Outcome {
		if c.Operation == domain.OpCreate {
			out.Intent.Amount.Amount++
		}
		return out
	}}
	b.work(b.engineOn(foreign), id, domain.EffectCharge)
	return id, b.effect(id, domain.EffectCharge)
}

// A parked charge of which nothing was ever confirmed ends its booking (G3, G4): nothing was taken, nothing will be, whoever replays,
// works or reconciles afterwards; the slot is free.
func TestDiscard_AParkedChargeEndsItsBooking(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.patient()
	id, e := b.parkedCharge()
	said, refusal := b.discard(e)
	require.Nil(t, refusal)
	require.Contains(t, said, "no money can be taken")
	booking, payment, taken := b.statuses(id)
	require.Equal(t, []any{"failed", "canceled", false}, []any{booking, payment, taken})
	require.Equal(t, []string{"held", "failed"}, b.events(id))
	for range 2 {
		_, err := b.engine().Charge(b.ctx, outbox.Job{Effect: e})
		require.NoError(t, err)
		_, err = b.engine().ResolveDoubt(b.ctx)
		require.NoError(t, err)
	}
	require.Empty(t, b.charges(id))
	b.agree(id)
}

// A charge whose intent may still take money is not discarded, nor one that somebody has confirmed at the provider (G3).
func TestDiscard_WhatMayTakeMoneyStays(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.patient()
	stays := func(id domain.BookingID, e domain.EffectID, why string) {
		before := b.tale(id).String()
		_, refusal := b.discard(e)
		require.NotNil(t, refusal)
		require.Contains(t, refusal.Reason, why)
		require.Equal(t, before, b.tale(id).String())
	}
	id, e := b.lostConfirm("parked")
	stays(id, e, "can still take money")

	id, e = b.parkedCharge()
	var intent string
	for _, i := range b.sim.Journal(0) {
		if i.Operation == "payment_intents.create" && strings.Contains(i.IdempotencyKey, b.paymentID(id)) {
			intent = i.Object
		}
	}
	out := b.gateway.Send(b.ctx, payments.Call{Operation: domain.OpConfirm, IntentID: intent, Key: "by-hand", Params: payments.Params{}})
	require.Equal(t, payments.Executed, out.Class, out.Detail)
	stays(id, e, "somebody has confirmed")

	id, e = b.lostConfirm("pending")
	stays(id, e, "only what is parked")

	id = b.declined()
	b.expire(id)
	_, err := b.engine().SweepHold(b.ctx)
	require.NoError(t, err)
	e = b.effect(id, domain.EffectCancel)
	b.exec(`UPDATE outbox SET status = 'parked' WHERE id = $1`, e)
	stays(id, e, "the slot would stay taken for ever")
}

// A refund is given up only once no send of it can be carried out any more (G3): never sent, refused, or a day after its last send and
// not listed. Then its sum is left, and what is asked for instead goes back once.
func TestDiscard_Refund(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.patient()
	park := func(fault string, do ...bool) (domain.BookingID, domain.EffectID) {
		id := b.paidFor()
		e, _ := b.ask(id, "first", 2000)
		if fault != "" {
			b.sim.AddFault(stripesim.Fault{Operation: "refunds.create", Fault: fault})
		}
		if len(do) == 0 {
			_, err := b.engine().Refund(b.ctx, outbox.Job{Effect: e})
			require.NoError(t, err)
		}
		b.exec(`UPDATE outbox SET status = 'parked' WHERE id = $1`, e)
		return id, e
	}
	gone := func(id domain.BookingID, e domain.EffectID) {
		said, refusal := b.discard(e)
		require.Nil(t, refusal)
		require.Contains(t, said, "20.00 EUR is given up")
		require.Equal(t, []string{"requested 2000 failed discarded"}, b.rows(id))
		require.Equal(t, []string{"held", "confirmed", "refund_failed"}, b.events(id))
		next, refused := b.ask(id, "second", 2500)
		require.Empty(t, refused, "all of it is left")
		require.Equal(t, "done", b.heal(next))
		sum, _ := b.paidBack(id)
		require.Equal(t, int64(2500), sum)
		b.booksAgree(id)
	}
	stays := func(id domain.BookingID, e domain.EffectID, why string) {
		before := b.tale(id).String()
		_, refusal := b.discard(e)
		require.NotNil(t, refusal)
		require.Contains(t, refusal.Reason, why)
		require.Equal(t, before, b.tale(id).String())
		require.Equal(t, []string{"requested 2000 pending"}, b.rows(id))
	}
	gone(park("", false)) // never sent

	id, e := park("error_503") // no answer, and not made: the key could still bring it
	stays(id, e, "may still carry it out until")
	b.exec(`UPDATE provider_calls SET last_sent_at = last_sent_at - interval '23 hours 50 minutes' WHERE operation = 'refund'`)
	stays(id, e, "may still carry it out until")
	b.exec(`UPDATE provider_calls SET last_sent_at = last_sent_at - interval '11 minutes' WHERE operation = 'refund'`)
	gone(id, e)

	id, e = park("error_503_after") // made, and nobody knows it
	stays(id, e, "the provider shows this refund")
	b.exec(`UPDATE provider_calls SET last_sent_at = last_sent_at - interval '48 hours' WHERE operation = 'refund'`)
	stays(id, e, "resolve it")
}
