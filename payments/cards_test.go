package payments_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"holdfast/domain"
	"holdfast/internal/bookings"
	"holdfast/payments"
	"holdfast/payments/stripesim"
)

// cards is the desk where another card is taken.
func (b *bed) cards(limits payments.CardLimits) *payments.Desk {
	return payments.NewDesk(b.bookings, noWaker{}, limits, slog.New(slog.DiscardHandler))
}

// change asks for another card under a key and returns the answer's status.
func (b *bed) change(id domain.BookingID, key, method string) int {
	b.Helper()
	answer, err := b.changeAnswer(b.cards(payments.CardLimits{PerClient: 1 << 20}), id, key, method)
	require.NoError(b, err)
	return answer.Status
}

func (b *bed) changeAnswer(c *payments.Desk, id domain.BookingID, key, method string) (bookings.Response, error) {
	return c.ChangeCard(b.ctx, payments.Ask{Client: b.client, Booking: id, Key: key}, method,
		func(v payments.View, taken bool) (int, []byte, error) {
			if taken {
				return 202, []byte(v.Payment.Status), nil
			}
			return 409, []byte(v.Payment.Status), nil
		})
}

// declined books with a card that is declined.
func (b *bed) declined() domain.BookingID {
	b.Helper()
	b.patient()
	id := b.book("pm_card_chargeDeclined")
	b.work(b.engine(), id, domain.EffectCharge)
	return id
}

// Another card after a decline (G3): the same intent, an update and a confirm of its own, and each key once. Expected:
// confirmed with one charge, of the second card; the first confirm's key is never sent again.
func TestCards_AnotherCardPays(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.declined()
	intent := b.intent(id)
	require.Equal(t, 202, b.change(id, "second", "pm_card_mastercard"))
	b.work(b.engine(), id, domain.EffectCharge)
	booking, payment, taken := b.statuses(id)
	require.Equal(t, []any{"confirmed", "succeeded", true}, []any{booking, payment, taken}, b.tale(id))
	charges := b.charges(id)
	require.Len(t, charges, 1)
	require.Equal(t, intent, charges[0].PaymentIntent)
	require.Equal(t, []string{"held", "payment_declined", "confirmed"}, b.events(id))
	var sends []string
	b.scan(`SELECT array_agg(operation || ':' || ordinal || ' x' || sends ORDER BY first_sent_at) FROM provider_calls c JOIN payments p ON p.id = c.payment_id WHERE p.booking_id = $1`, &sends, id)
	require.Equal(t, []string{"create:1 x1", "confirm:1 x1", "update:2 x1", "confirm:2 x1"}, sends)
}

// A second decline, then a third card.
func TestCards_OneAfterTheOther(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.declined()
	for i, method := range []string{"pm_card_chargeDeclinedInsufficientFunds", "pm_card_chargeDeclinedExpiredCard", "pm_card_visa"} {
		require.Equal(t, 202, b.change(id, method, method), "card %d", i+2)
		b.work(b.engine(), id, domain.EffectCharge)
	}
	booking, _, _ := b.statuses(id)
	require.Equal(t, "confirmed", booking, b.tale(id))
	require.Len(t, b.charges(id), 1)
	require.Equal(t, []string{"held", "payment_declined", "payment_declined", "payment_declined", "confirmed"}, b.events(id))
}

// A token that the provider refuses is a declined card: nothing can have been charged, and another may follow.
func TestCards_ATokenThatNobodyKnows(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.declined()
	require.Equal(t, 202, b.change(id, "second", "pm_nobody_knows"))
	b.work(b.engine(), id, domain.EffectCharge)
	_, payment, _ := b.statuses(id)
	require.Equal(t, "declined", payment, b.tale(id))
	require.Equal(t, 202, b.change(id, "third", "pm_card_visa"))
	b.work(b.engine(), id, domain.EffectCharge)
	booking, _, _ := b.statuses(id)
	require.Equal(t, "confirmed", booking, b.tale(id))
	require.Len(t, b.charges(id), 1)
}

// When another card is taken and when not. A refusal is stored like every answer: the key never means anything else.
func TestCards_OnlyAfterADecline(t *testing.T) {
	t.Parallel()
	b := setup(t)
	pending := b.book("pm_card_visa")
	require.Equal(t, 409, b.change(pending, "early", "pm_card_mastercard"))
	b.work(b.engine(), pending, domain.EffectCharge)
	require.Equal(t, 409, b.change(pending, "paid", "pm_card_mastercard"))
	require.Equal(t, 409, b.change(pending, "early", "pm_card_mastercard"), "replayed")
	b.agree(pending)

	acting := b.book("pm_card_authenticationRequired")
	b.work(b.engine(), acting, domain.EffectCharge)
	require.Equal(t, 409, b.change(acting, "acting", "pm_card_visa"), "the customer may still pay with the card before")

	over := b.declined()
	b.expire(over)
	require.Equal(t, 409, b.change(over, "late", "pm_card_visa"))
	_, err := b.engine().SweepHold(b.ctx)
	require.NoError(t, err)
	require.Equal(t, []string{"ending", "declined", "card_declined"}, []string{
		string(b.view(over).Booking.Status), string(b.view(over).Payment.Status), b.view(over).Payment.FailureCode,
	}, "why the card was declined is told as long as that it was")

	_, err = b.changeAnswer(b.cards(payments.CardLimits{}), domain.NewID[domain.BookingID](), "none", "pm_card_visa")
	require.ErrorIs(t, err, domain.ErrNotFound)
	declined := b.declined()
	other := *b
	other.client = domain.NewID[domain.ClientID]()
	_, err = other.changeAnswer(b.cards(payments.CardLimits{}), declined, "theirs", "pm_card_visa")
	require.ErrorIs(t, err, domain.ErrNotFound, "G9: another client's booking does not exist")
}

// The testing of stolen cards: few cards for a booking, few for a client. Nothing is stored, and the key stays free.
func TestCards_FewAreTaken(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var tooMany *payments.TooManyCardsError
	id := b.declined()
	require.Equal(t, 202, b.change(id, "second", "pm_card_chargeDeclined"))
	b.work(b.engine(), id, domain.EffectCharge)
	_, err := b.changeAnswer(b.cards(payments.CardLimits{PerBooking: 2}), id, "third", "pm_card_visa")
	require.ErrorAs(t, err, &tooMany)
	require.Zero(t, tooMany.RetryAfter, "never for this booking")

	other := b.declined()
	perClient := b.cards(payments.CardLimits{PerClient: 1})
	_, err = b.changeAnswer(perClient, other, "key", "pm_card_visa")
	require.ErrorAs(t, err, &tooMany)
	require.InDelta(t, time.Hour, tooMany.RetryAfter, float64(time.Minute))
	b.exec(`UPDATE card_changes SET changed_at = changed_at - interval '1 hour'`)
	answer, err := b.changeAnswer(perClient, other, "key", "pm_card_visa")
	require.NoError(t, err, "the key stayed free")
	require.Equal(t, 202, answer.Status)
	b.work(b.engine(), other, domain.EffectCharge)
	b.agree(other)
}

// G1: one intention, one card. The same request ten times at once is one update; two keys at once are two intentions, of
// which the second comes too early.
func TestCards_AtOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.declined()
	desk := b.cards(payments.CardLimits{})
	statuses := make([]int, 12)
	var group errgroup.Group
	for i := range statuses {
		key := "same"
		if i >= 10 {
			key = "rival"
		}
		group.Go(func() error {
			answer, err := b.changeAnswer(desk, id, key, "pm_card_visa")
			statuses[i] = answer.Status
			return err
		})
	}
	require.NoError(t, group.Wait())
	for i, status := range statuses {
		require.Equal(t, statuses[i/10*10], status, "one key, one answer")
	}
	require.ElementsMatch(t, []int{202, 409}, []int{statuses[0], statuses[10]})
	var card, effects int
	b.scan(`SELECT card FROM payments WHERE booking_id = $1`, &card, id)
	b.scan(`SELECT count(*) FROM outbox WHERE booking_id = $1 AND kind = 'charge'`, &effects, id)
	require.Equal(t, []int{2, 2}, []int{card, effects})
	b.work(b.engine(), id, domain.EffectCharge)
	require.Len(t, b.charges(id), 1)
}

// A late answer about card one never settles card two (G3): the decline of the first confirm is lost, a read finds it, the
// customer sends another card, and only then the answer arrives. Expected: the second card's own outcome, and no word of a
// second decline.
func TestCards_ALateAnswerAboutTheCardBefore(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.book("pm_card_chargeDeclined")
	late := &stalled{Gateway: b.gateway, afterSend: func(c payments.Call, out payments.Outcome) payments.Outcome {
		if c.Operation == domain.OpConfirm {
			b.exec(`UPDATE payments SET version = version + 1 WHERE booking_id = $1`, id) // as any other step would
			fast := b.engine()
			b.work(fast, id, domain.EffectCharge)
			b.reconcile(fast, id)
			require.Equal(t, 202, b.change(id, "second", "pm_card_visa"))
		}
		return out
	}}
	_, err := b.engineOn(late).Charge(b.ctx, b.job(id))
	require.NoError(t, err)
	b.work(b.engine(), id, domain.EffectCharge)
	b.reconcile(b.engine(), id)
	booking, _, _ := b.statuses(id)
	require.Equal(t, "confirmed", booking, b.tale(id))
	require.Len(t, b.charges(id), 1)
	require.Equal(t, []string{"held", "payment_declined", "confirmed"}, b.events(id))
}

// Confirmed only once a read has shown the new card: the update's answer is lost, and a read still shows none. Expected:
// no confirm before the update is known to have run and the intent to hold its card.
func TestCards_ConfirmWaitsForTheUpdate(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.declined()
	require.Equal(t, 202, b.change(id, "second", "pm_card_visa"))
	hidden := &stalled{Gateway: b.gateway, alterRead: func(i *payments.Intent) {
		i.Status, i.PaymentMethod = payments.IntentRequiresPaymentMethod, ""
	}}
	b.work(b.engineOn(hidden), id, domain.EffectCharge)
	for _, e := range b.sim.Journal(0) {
		require.NotContains(t, e.IdempotencyKey, ":confirm:2", "confirmed before the card was seen")
	}
	b.reconcile(b.engine(), id)
	booking, _, _ := b.statuses(id)
	require.Equal(t, "confirmed", booking, b.tale(id))
	require.Len(t, b.charges(id), 1)
}

// A state of the intent speaks of the card that is on it (G3, G4): the customer asks for another card, and before it is
// brought there the bank wants to see them for one that they tried themselves. Expected: nobody is told to act for the new
// card, whose confirm has not run, and it pays.
func TestCards_AStateOfAnotherCardSaysNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.declined()
	require.Equal(t, 202, b.change(id, "second", "pm_card_visa"))
	_, err := b.sim.Act(stripesim.Action{Action: "customer_confirm", PaymentIntent: b.intent(id), PaymentMethod: "pm_card_authenticationRequired"})
	require.NoError(t, err)
	b.deliver(b.claim("evt_1", "payment_intent.requires_action", b.intent(id), map[string]string{"booking_id": id.String()}))
	b.settleEvents(b.engine())
	_, payment, _ := b.statuses(id)
	require.Equal(t, "pending", payment, b.tale(id))
	require.NotContains(t, b.events(id), "action_required")
	b.work(b.engine(), id, domain.EffectCharge)
	b.reconcile(b.engine(), id)
	booking, _, _ := b.statuses(id)
	require.Equal(t, "confirmed", booking, b.tale(id))
	require.Len(t, b.charges(id), 1)
}

// An update's stored 500 is a doubt that its key cannot end: the booking is fenced, and nothing is charged.
func TestCards_AStoredErrorIsFenced(t *testing.T) {
	t.Parallel()
	for _, fault := range []string{"error_500_before", "error_500_after"} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			id := b.declined()
			b.sim.AddFault(stripesim.Fault{Operation: "payment_intents.update", Fault: fault})
			require.Equal(t, 202, b.change(id, "second", "pm_card_visa"))
			b.work(b.engine(), id, domain.EffectCharge)
			b.reconcile(b.engine(), id)
			booking, _, taken := b.statuses(id)
			require.Equal(t, []any{"failed", false}, []any{booking, taken}, b.tale(id))
			require.Empty(t, b.charges(id))
		})
	}
}
