package payments_test

import (
	"bytes"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/outbox"
	"holdfast/payments"
	"holdfast/payments/stripesim"
)

// What a refund by request gives back is not given back again by a cancellation. If it fails after that, at once or weeks later, the
// customer is owed what the policy says: the refund is parked, and a replay makes it (G5, G7).
func TestRefund_OwedBecauseTheCancellationCountedOnIt(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.config.Poll = 10 * time.Millisecond
	for _, late := range []bool{false, true} {
		id := b.paidFor("pm_card_pendingRefund")
		intent := b.intent(id)
		effect, refusal := b.ask(id, "r", 2000)
		require.Empty(t, refusal)
		b.work(b.engine(), id, domain.EffectRefund)
		if late {
			b.perform(stripesim.Action{Action: "settle_refund", PaymentIntent: intent})
			require.Equal(t, "done", b.heal(effect))
		}
		require.Equal(t, 200, b.cancel(id, "stop", eur(500)))
		if !late {
			b.perform(stripesim.Action{Action: "settle_refund", PaymentIntent: intent, Outcome: "failed"})
		} else {
			b.perform(stripesim.Action{Action: "fail_refund", PaymentIntent: intent})
			b.lookAgain()
			b.scan(`SELECT effect_id FROM refunds WHERE reason = 'requested' AND payment_id = (SELECT id FROM payments WHERE booking_id = $1)`, &effect, id)
		}
		require.Equal(t, "parked", b.heal(effect), b.tale(id))
		_, err := outbox.Replay(b.ctx, b.db.Pool, effect, "ada", "once more")
		require.NoError(t, err)
		_, err = b.engine().Refund(b.ctx, outbox.Job{Effect: effect, Kind: domain.EffectRefund})
		require.NoError(t, err)
		var again int
		for _, r := range b.refunds(id) {
			if r.Amount == 2000 && r.Status == "pending" {
				again++
			}
		}
		require.Equal(t, 1, again, b.tale(id))
	}
}

// Whoever asks anew for what a cancellation had counted on, and less of it, ends the first request by its replay (G7).
func TestRefund_OwedAndAskedForAnew(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.config.Poll = 10 * time.Millisecond
	b.policy(`[{"hours_before": 1, "percent": 50}]`)
	id := b.paidFor("pm_card_pendingRefund")
	effect, _ := b.ask(id, "r", 2500)
	b.work(b.engine(), id, domain.EffectRefund)
	require.Equal(t, 200, b.cancel(id, "stop", eur(0)))
	b.perform(stripesim.Action{Action: "settle_refund", PaymentIntent: b.intent(id), Outcome: "failed"})
	require.Equal(t, "parked", b.heal(effect), b.tale(id))
	_, refusal := b.ask(id, "half", 1250)
	require.Empty(t, refusal)
	_, err := outbox.Replay(b.ctx, b.db.Pool, effect, "ada", "what is owed was asked for anew")
	require.NoError(t, err)
	require.Equal(t, "done", b.heal(effect), b.tale(id))
}

// Somebody gave back by hand what was owed, so that ours was over, and theirs fails weeks later: the money is owed again, is left to a
// person, and a replay makes it (G5, G7, G8).
func TestRefund_OwedAgainWhenTheOneByHandFails(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.config.Poll = 10 * time.Millisecond
	id := b.lateSuccess()
	intent := b.intent(id)
	b.perform(stripesim.Action{Action: "refund", PaymentIntent: intent})
	require.Equal(t, "done", b.healRefund(id))
	require.Equal(t, []string{"dashboard 2500 succeeded", "late_success 2500 failed charge_already_refunded"}, b.rows(id))
	b.perform(stripesim.Action{Action: "fail_refund", PaymentIntent: intent})
	for range 2 { // once is enough
		b.lookAgain()
	}
	var effect domain.EffectID
	b.scan(`SELECT id FROM outbox WHERE booking_id = $1 AND kind = 'refund' AND status = 'parked'`, &effect, id)
	_, err := outbox.Replay(b.ctx, b.db.Pool, effect, "ada", "the bank sent it back")
	require.NoError(t, err)
	require.Equal(t, "done", b.heal(effect), b.tale(id))
	sum, _ := b.paidBack(id)
	require.Equal(t, int64(2500), sum)
	b.booksAgree(id)
}

// Where ours gave back only the rest, nothing can be parked: it is said aloud (G5).
func TestRefund_OwedAndNobodysEffect(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.config.Poll = 10 * time.Millisecond
	id := b.lateSuccess()
	intent := b.intent(id)
	b.perform(stripesim.Action{Action: "refund", PaymentIntent: intent, Amount: 600})
	require.Equal(t, "done", b.healRefund(id))
	require.Equal(t, []string{"dashboard 600 succeeded", "late_success 1900 succeeded"}, b.rows(id))
	for _, r := range b.refunds(id) {
		if r.Amount == 600 {
			b.perform(stripesim.Action{Action: "fail_refund", Refund: r.ID})
		}
	}
	var log bytes.Buffer
	p := payments.New(b.db.Pool, b.gateway, noWaker{}, b.config, slog.New(slog.NewTextHandler(&log, nil)))
	b.exec(`UPDATE refunds SET watch_at = clock_timestamp() WHERE watch_at IS NOT NULL`)
	for worked := true; worked; {
		var err error
		worked, err = p.WatchRefund(b.ctx)
		require.NoError(t, err)
	}
	require.Contains(t, b.rows(id)[0], "dashboard 600 failed")
	require.Contains(t, log.String(), "level=ERROR")
	require.Contains(t, log.String(), "no refund of ours gives it back")
}

// A dispute is won, and its money is not back with us yet: what is owed stays owed until it is. A replay in between parks it again, and
// does not make do with what there is (G5, G7).
func TestRefund_OwedUntilAWonDisputeIsPaidBack(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.config.Poll = 10 * time.Millisecond
	for _, part := range []int64{0, 1000} { // 0: all of it
		id := b.lateSuccess()
		intent := b.intent(id)
		b.dispute(intent, stripesim.Action{Action: "open_dispute", Amount: part})
		b.hearDisputes(intent)
		require.Equal(t, "parked", b.healRefund(id))
		effect := b.effect(id, domain.EffectRefund)
		replay := func() string {
			_, err := outbox.Replay(b.ctx, b.db.Pool, effect, "ada", "the dispute is won")
			require.NoError(t, err)
			return b.heal(effect)
		}
		b.exec(`UPDATE disputes SET status = 'won' WHERE payment_id = (SELECT id FROM payments WHERE booking_id = $1)`, id)
		require.Equal(t, "parked", replay(), b.tale(id))
		require.Equal(t, []string{"late_success 2500 failed charge_disputed"}, b.rows(id))
		b.dispute(intent, stripesim.Action{Action: "close_dispute"})
		b.exec(`UPDATE disputes SET withdrawn = false WHERE payment_id = (SELECT id FROM payments WHERE booking_id = $1)`, id)
		require.Equal(t, "done", replay(), b.tale(id))
		sum, _ := b.paidBack(id)
		require.Equal(t, int64(2500), sum)
	}
}
