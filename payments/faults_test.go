package payments_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/payments"
	"holdfast/payments/stripesim"
)

// Each fault × each send (G3, G4, G5): the first matching sends fail, then the provider heals. Expected of every cell,
// stated first: a booking that should be paid ends confirmed with one succeeded charge, or, where the provider has
// stored an error under the confirm's key, may also end failed with a proven zero; a booking whose hold is over ends
// expired with a proven zero. The confirm is sent under one key only, and no key runs twice.
func TestFaults_EverySendHealsWithoutASecondCharge(t *testing.T) {
	t.Parallel()
	faults := []string{
		"reset_before", "reset_after", "hang_after", "error_500_before", "error_500_after", "error_503", "rate_limit_429", "in_use_409",
		"error_502", "error_503_after", "error_504", "error_424", "html_502", "bad_body", "lock_timeout_429", "unauthorized_401", "reset_after_reused",
	}
	for _, operation := range []string{"create", "confirm", "cancel"} {
		for _, fault := range faults {
			for _, times := range []int{1, 5} { // once; and more often than a worker tries
				t.Run(fmt.Sprintf("%s/%s/%d", operation, fault, times), func(t *testing.T) {
					t.Parallel()
					if fault == "hang_after" && times > 1 { // the twins of a hanging send are replays or 409s, which in_use_409 has
						times = 2
					}
					b := setup(t)
					id := b.book("pm_card_visa")
					p := b.engine()
					if operation == "cancel" {
						b.suspend(id)
						b.expire(id)
					}
					b.sim.AddFault(stripesim.Fault{Operation: "payment_intents." + operation, Fault: fault, Times: times})
					b.work(p, id, domain.EffectCharge)
					b.reconcile(b.engine(), id)
					b.agree(id)
					booking, _, _ := b.statuses(id)
					switch {
					case operation == "cancel":
						require.Equal(t, "expired", booking, b.tale(id))
					case operation == "confirm" && fault == "error_500_before":
						require.Equal(t, "failed", booking, b.tale(id)) // fenced: nobody could know whether it comes yet
					default:
						require.Equal(t, "confirmed", booking, b.tale(id))
					}
				})
			}
		}
	}
}

// suspend leaves the booking's intent made and unconfirmed: every confirm is refused before it can run.
func (b *bed) suspend(id domain.BookingID) {
	b.Helper()
	fault := b.sim.AddFault(stripesim.Fault{Operation: "payment_intents.confirm", Fault: "error_503", Times: -1})
	require.NotEmpty(b, fault)
	b.work(b.engine(), id, domain.EffectCharge)
	b.sim.ClearFaults()
}

// A decline settles, leaves the booking held and the slot taken, and ends with the hold (G3, G4).
func TestCharge_DeclineEndsWithTheHold(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.book("pm_card_chargeDeclinedInsufficientFunds")
	p := b.engine()
	b.work(p, id, domain.EffectCharge)
	booking, payment, taken := b.statuses(id)
	require.Equal(t, []any{"held", "declined", true}, []any{booking, payment, taken})
	b.expire(id)
	b.reconcile(p, id)
	require.Eventually(t, func() bool {
		b.reconcile(p, id)
		booking, _, _ = b.statuses(id)
		return booking == "expired"
	}, time.Minute, 5*time.Millisecond)
	b.agree(id)
	var events []string
	b.scan(`SELECT array_agg(event_type ORDER BY event_seq) FROM outbox WHERE booking_id = $1 AND kind = 'publish'`, &events, id)
	require.Equal(t, []string{"held", "payment_declined", "expired"}, events)
}

// A lost decline is found by reading, not by charging again: the replayed 402 is a snapshot (G3).
func TestCharge_LostDecline(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.book("pm_card_chargeDeclined")
	b.sim.AddFault(stripesim.Fault{Operation: "payment_intents.confirm", Fault: "reset_after"})
	p := b.engine()
	b.work(p, id, domain.EffectCharge)
	booking, payment, _ := b.statuses(id)
	require.Equal(t, []any{"held", "declined"}, []any{booking, payment}, b.tale(id))
	require.Empty(t, b.charges(id))
}

// The fence finds a success: the confirm ran, its answer was lost, and the hold ended before anybody looked (G4).
// Expected: confirmed, never expired.
func TestFence_FindsTheSuccess(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.book("pm_card_visa")
	b.config.MaxSends = 2 // create and one confirm
	p := b.engine()
	b.sim.AddFault(stripesim.Fault{Operation: "payment_intents.confirm", Fault: "reset_after", Times: -1})
	b.work(p, id, domain.EffectCharge)
	_, payment, _ := b.statuses(id)
	require.Equal(t, "in_doubt", payment)
	b.expire(id)
	b.reconcile(p, id)
	b.agree(id)
	booking, _, _ := b.statuses(id)
	require.Equal(t, "confirmed", booking)
}

// No key is sent past its horizon: it would execute as new (G3). The confirm ran, its answer was lost, everything was
// down for 21 hours, and the provider has forgotten the key. Expected: one charge, confirmed, and no confirm after the
// first.
func TestHorizon_PastItTheProviderIsOnlyRead(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.book("pm_card_visa")
	b.config.MaxSends = 2
	p := b.engine()
	b.sim.AddFault(stripesim.Fault{Operation: "payment_intents.confirm", Fault: "reset_after", Times: -1})
	b.work(p, id, domain.EffectCharge)
	b.sim.ClearFaults()
	require.Len(t, b.charges(id), 1)
	before := b.sent("payment_intents.confirm")
	b.exec(`UPDATE provider_calls SET first_sent_at = first_sent_at - interval '21 hours', last_sent_at = last_sent_at - interval '21 hours'`)
	b.sim.Advance(25 * time.Hour)
	b.reconcile(p, id)
	b.agree(id)
	booking, _, _ := b.statuses(id)
	require.Equal(t, "confirmed", booking)
	require.Equal(t, before, b.sent("payment_intents.confirm"), "a confirm was sent past its horizon")
}

// The same, but the confirm never arrived: the booking is fenced for doubt, and ends with a proven zero (G4, G5).
func TestHorizon_UnconfirmedIsFenced(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.book("pm_card_visa")
	b.config.MaxSends = 2
	p := b.engine()
	b.sim.AddFault(stripesim.Fault{Operation: "payment_intents.confirm", Fault: "reset_before", Times: -1})
	b.work(p, id, domain.EffectCharge)
	b.sim.ClearFaults()
	b.exec(`UPDATE provider_calls SET first_sent_at = first_sent_at - interval '21 hours', last_sent_at = last_sent_at - interval '21 hours'`)
	before := b.sent("payment_intents.confirm")
	b.reconcile(p, id)
	b.agree(id)
	require.Equal(t, before, b.sent("payment_intents.confirm"), "a confirm was sent past its horizon")
	booking, _, _ := b.statuses(id)
	require.Equal(t, "failed", booking)
}

// A definite refusal of the create frees the slot at once, and nothing retries (G4, G5).
func TestCharge_DefiniteRefusal(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.book("pm_card_nobodyKnows")
	p := b.engine()
	b.work(p, id, domain.EffectCharge)
	booking, payment, taken := b.statuses(id)
	require.Equal(t, []any{"failed", "refused", false}, []any{booking, payment, taken}, b.tale(id))
	b.agree(id)
	view, err := payments.NewViewer(b.db.Pool).View(t.Context(), b.client, id)
	require.NoError(t, err)
	require.Equal(t, "resource_missing", view.Payment.FailureCode, "the customer is told why")
	var open int
	b.scan(`SELECT count(*) FROM outbox WHERE status NOT IN ('done', 'not_needed') AND kind <> 'publish'`, &open)
	require.Zero(t, open)
}

// sent counts the requests of an operation that reached the provider.
func (b *bed) sent(operation string) int {
	n := 0
	for _, e := range b.sim.Journal(0) {
		if e.Operation == operation {
			n++
		}
	}
	return n
}
