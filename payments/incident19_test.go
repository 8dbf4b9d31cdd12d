package payments_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/outbox"
	"holdfast/payments/stripesim"
)

// Incident 19 (G5, G8): what is owed of a charge that is disputed, as far as we know, is not sent: it is refused for good, told, and
// left to a person, and the provider is not even asked. Once the dispute is won, a replay gives it back; the dispute counts no more.
func TestIncident19_ADisputeThatWeKnowOf(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.lateSuccess()
	intent := b.intent(id)
	b.dispute(intent, stripesim.Action{Action: "open_dispute"})
	b.hearDisputes(intent)
	require.Equal(t, "parked", b.healRefund(id))
	require.Zero(t, b.sent("refunds.create"), "the provider was asked although we knew")
	require.Equal(t, []string{"held", "failed", "disputed", "refund_failed"}, b.events(id))
	var code string
	b.scan(`SELECT failure_code FROM refunds`, &code)
	require.Equal(t, "charge_disputed", code)

	b.dispute(intent, stripesim.Action{Action: "close_dispute", Outcome: "won"})
	b.hearDisputes(intent)
	require.Equal(t, int64(2500), b.balance(id).Refundable)
	_, err := outbox.Replay(b.ctx, b.db.Pool, b.effect(id, domain.EffectRefund), "ada", "the dispute is won")
	require.NoError(t, err)
	require.Equal(t, "done", b.healRefund(id))
	require.Len(t, b.refunds(id), 1)
	require.Equal(t, []string{"held", "failed", "disputed", "refund_failed", "disputed", "refunded"}, b.events(id))
	balance := b.balance(id)
	require.Equal(t, []int64{2500, 2500, 0, 0}, []int64{balance.Captured, balance.Refunded, balance.Disputed, balance.Refundable})
}

// A lost dispute after an earlier refund counts once: never more than was taken, never below zero (G8). An inquiry keeps no refund.
func TestIncident19_ALostDisputeCountsOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.lateSuccess("pm_card_createDisputeInquiry")
	intent := b.intent(id)
	b.hearDisputes(intent)
	require.Equal(t, []domain.DisputeStatus{"warning_needs_response"}, b.disputeStatuses(id))
	require.Equal(t, "done", b.healRefund(id), "an inquiry is no dispute yet")
	b.dispute(intent, stripesim.Action{Action: "close_dispute"})
	b.dispute(intent, stripesim.Action{Action: "open_dispute"}) // of what was refunded
	b.dispute(intent, stripesim.Action{Action: "close_dispute", Outcome: "lost"})
	b.hearDisputes(intent)
	balance := b.balance(id)
	require.Equal(t, []int64{2500, 2500, 2500, 0}, []int64{balance.Captured, balance.Refunded, balance.Disputed, balance.Refundable})
}
