package payments_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/outbox"
	"holdfast/payments"
	"holdfast/payments/stripesim"
)

// hide makes a booking that has failed with a proven zero, as far as anybody could see: the provider hides a charge behind a
// stored 500 and leaves it out of the listing once. It returns the intent, which may still be rolled forward.
func (b *bed) hide(method string) (id domain.BookingID, intent string) {
	b.Helper()
	id = b.book(method)
	return id, b.hideCharge(id)
}

func (b *bed) hideCharge(id domain.BookingID) (intent string) {
	b.Helper()
	b.sim.AddFault(stripesim.Fault{Operation: "payment_intents.confirm", Fault: "partial_500"})
	b.sim.AddFault(stripesim.Fault{Operation: "charges.list", Fault: "list_page_empty"})
	p := b.engine()
	b.work(p, id, domain.EffectCharge)
	b.reconcile(p, id)
	booking, payment, taken := b.statuses(id)
	require.Equal(b, []any{"failed", "canceled", false}, []any{booking, payment, taken}, b.tale(id))
	return b.intent(id)
}

// appear lets a hidden charge go through, and somebody notice.
func (b *bed) appear(intent string) {
	b.Helper()
	_, err := b.sim.Act(stripesim.Action{Action: "roll_forward", PaymentIntent: intent})
	require.NoError(b, err)
	b.watch()
}

// lateSuccess is a booking that has ended, and whose money was seen to be taken afterwards.
func (b *bed) lateSuccess(method ...string) domain.BookingID {
	b.Helper()
	id, intent := b.hide(append(method, "pm_card_visa")[0])
	b.appear(intent)
	return id
}

// healRefund carries a refund on, as worker and reconciler would, until it is finished or parked. It returns its status.
func (b *bed) healRefund(id domain.BookingID) (status string) {
	b.Helper()
	p := b.engine()
	for deadline := time.Now().Add(time.Minute); ; b.pause(5 * time.Millisecond) {
		b.scan(`SELECT status FROM outbox WHERE booking_id = $1 AND kind = 'refund'`, &status, id)
		switch status {
		case "pending":
			b.work(p, id, domain.EffectRefund)
		case "in_doubt":
			_, err := p.ResolveDoubt(b.ctx)
			require.NoError(b, err)
		default:
			return status
		}
		if b.waitsForADay(id) {
			b.exec(`UPDATE provider_calls SET first_sent_at = first_sent_at - interval '25 hours', last_sent_at = last_sent_at - interval '25 hours' WHERE operation = 'refund'`)
			b.exec(`UPDATE outbox SET due_at = clock_timestamp() WHERE booking_id = $1 AND status = 'in_doubt'`, id)
			b.sim.Advance(25 * time.Hour)
		}
		require.True(b, time.Now().Before(deadline), "a refund that never ends: %s", b.tale(id))
	}
}

func (b *bed) waitsForADay(id domain.BookingID) (waits bool) {
	b.Helper()
	b.scan(`SELECT EXISTS (SELECT FROM outbox WHERE booking_id = $1 AND kind = 'refund' AND status = 'in_doubt' AND last_error LIKE '%next key follows%')`, &waits, id)
	return waits
}

// rows tells the refunds as our rows have them.
func (b *bed) rows(id domain.BookingID) (rows []string) {
	b.Helper()
	b.scan(`SELECT coalesce(array_agg(concat_ws(' ', r.reason, r.amount, r.status, r.failure_code) ORDER BY r.reason, r.amount, r.created_at), '{}')
		FROM refunds r JOIN payments p ON p.id = r.payment_id WHERE p.booking_id = $1`, &rows, id)
	return rows
}

// refunds returns the provider's own truth: the refunds of a booking's charges.
func (b *bed) refunds(id domain.BookingID) []stripesim.LedgerRefund {
	b.Helper()
	l := b.sim.Ledger()
	require.NoError(b, l.Check())
	return slices.DeleteFunc(l.Refunds, func(r stripesim.LedgerRefund) bool {
		return !slices.ContainsFunc(l.Succeeded(id.String()), func(c stripesim.LedgerCharge) bool { return c.ID == r.Charge })
	})
}

// givenBack checks that all of a late success went back, once and under the refund's own key, and that its booking tells so.
func (b *bed) givenBack(id domain.BookingID, ordinal string) {
	b.Helper()
	refunds := b.refunds(id)
	require.Len(b, refunds, 1, b.tale(id))
	require.Equal(b, []any{int64(2500), "succeeded"}, []any{refunds[0].Amount, refunds[0].Status})
	var row, payment, status, provider string
	require.NoError(b, b.db.Pool.QueryRow(b.ctx, `SELECT r.id::text, p.id::text, r.status, r.provider_refund_id FROM refunds r JOIN payments p ON p.id = r.payment_id WHERE p.booking_id = $1`,
		id).Scan(&row, &payment, &status, &provider))
	require.Equal(b, []string{"succeeded", refunds[0].ID}, []string{status, provider})
	require.Equal(b, "hf:"+row+":refund:"+ordinal, refunds[0].IdempotencyKey)
	require.Equal(b, map[string]string{"booking_id": id.String(), "payment_id": payment, "refund_id": row, "refund_ordinal": ordinal}, refunds[0].Metadata)
	booking, paid, taken := b.statuses(id)
	require.Equal(b, []any{"failed", "succeeded", false}, []any{booking, paid, taken}, b.tale(id))
	require.Equal(b, []string{"held", "failed", "refunded"}, b.events(id))
}

// A success that appears after the end goes back in full, once, with nobody's help (G3, G8). It is told, and alarmed.
func TestRefund_LateSuccessGoesBack(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id, intent := b.hide("pm_card_visa")
	_, err := b.sim.Act(stripesim.Action{Action: "roll_forward", PaymentIntent: intent})
	require.NoError(t, err)
	b.exec(`UPDATE payments SET watch_at = clock_timestamp() WHERE watch_at IS NOT NULL`)
	var log bytes.Buffer
	p := payments.New(b.db.Pool, b.gateway, noWaker{}, b.config, slog.New(slog.NewTextHandler(&log, nil)))
	_, err = p.Watch(b.ctx)
	require.NoError(t, err)
	require.Contains(t, log.String(), "level=ERROR")
	require.Contains(t, log.String(), "although the booking has ended")
	page, err := outbox.List(b.ctx, b.db.Pool, outbox.Filter{Kind: domain.EffectRefund})
	require.NoError(t, err)
	require.Len(t, page.Rows, 1, "listed until it is done")
	require.Equal(t, "done", b.healRefund(id))
	b.givenBack(id, "1")
	for range 2 { // a twin, late
		_, err := b.engine().Refund(b.ctx, outbox.Job{Effect: b.effect(id, domain.EffectRefund)})
		require.NoError(t, err)
	}
	require.Equal(t, 1, b.sent("refunds.create"))
	b.givenBack(id, "1")
}

// Each fault of the refund's send heals with one refund at the provider (G3, G5). Where the provider has stored an error
// under the key, and nothing is listed, the next key is taken a day later and no sooner.
func TestRefund_EveryFaultHeals(t *testing.T) {
	t.Parallel()
	faults := slices.Concat(matrixFaults[1:], []string{"refuse", "delay", "html_502_after"})
	for _, times := range []int{1, 5} { // once; and more often than a worker tries
		t.Run(fmt.Sprint(times), func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.config.LateRefunds = 1000
			for _, fault := range faults {
				f := stripesim.Fault{Operation: "refunds.create", Fault: fault, Times: times}
				switch {
				case fault == "refuse" || fault == "slow" || fault == "delay":
					f.DelayMS, f.Times = 20, 1
				case fault == "hang_after" || strings.Contains(fault, "500"): // its twins are replays
					f.Times = 1
				}
				if times > 1 && f.Times == 1 {
					continue
				}
				id := b.lateSuccess()
				b.sim.AddFault(f)
				require.Equal(t, "done", b.healRefund(id), fault)
				b.sim.ClearFaults()
				ordinal := "1"
				if fault == "error_500_before" {
					ordinal = "2"
				}
				b.givenBack(id, ordinal)
			}
		})
	}
}

// A refund whose answer was lost, and that a listing leaves out or cannot be listed, is not made twice (G3).
func TestRefund_ListingsThatLie(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.config.Poll = 10 * time.Millisecond
	for _, lie := range []string{"list_page_empty", "list_page_error", "error_503"} {
		for _, lost := range []string{"reset_after", "error_500_after"} {
			id := b.lateSuccess()
			b.sim.AddFault(stripesim.Fault{Operation: "refunds.create", Fault: lost})
			b.sim.AddFault(stripesim.Fault{Operation: "refunds.list", Fault: lie})
			require.Equal(t, "done", b.healRefund(id), lie)
			require.Len(t, b.refunds(id), 1)
			b.sim.ClearFaults()
			b.givenBack(id, "1")
		}
	}
}

// A key that can be sent no more gives way to the next one only when nothing that was sent can bring the refund any more: a day
// after the last send, and after a listing without it (G3).
func TestRefund_TheNextKeyWaitsForADay(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.lateSuccess()
	b.sim.AddFault(stripesim.Fault{Operation: "refunds.create", Fault: "error_500_before"})
	b.work(b.engine(), id, domain.EffectRefund)
	look := func(age string) []string {
		b.exec(`UPDATE provider_calls SET first_sent_at = clock_timestamp() - $1::interval, last_sent_at = clock_timestamp() - $1::interval WHERE operation = 'refund'`, age)
		b.exec(`UPDATE outbox SET due_at = clock_timestamp() WHERE kind = 'refund'`)
		_, err := b.engine().ResolveDoubt(b.ctx)
		require.NoError(t, err)
		var keys []string
		b.scan(`SELECT array_agg(ordinal::text ORDER BY ordinal) FROM provider_calls WHERE operation = 'refund'`, &keys)
		return keys
	}
	require.Equal(t, []string{"1"}, look("0 hours"))
	require.Equal(t, []string{"1"}, look("23 hours 50 minutes"))
	require.Empty(t, b.refunds(id))
	require.Equal(t, []string{"1", "2"}, look("24 hours 1 minute"))
	b.givenBack(id, "2")
}

// dying is a provider's gateway in a process that dies at its send.
type dying struct {
	payments.Gateway

	after bool
}

func (d dying) Send(ctx context.Context, c payments.Call) payments.Outcome {
	if d.after {
		d.Gateway.Send(ctx, c)
	}
	panic("the process dies")
}

// A worker that dies at the send, before or after it, leaves a refund that the next one carries on (G3, G5).
func TestRefund_TheWorkerDies(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, after := range []bool{false, true} {
		id := b.lateSuccess()
		require.Panics(t, func() {
			_, _ = b.engineOn(dying{b.gateway, after}).Refund(b.ctx, outbox.Job{Effect: b.effect(id, domain.EffectRefund)})
		})
		require.Equal(t, "done", b.healRefund(id))
		b.givenBack(id, "1")
	}
}

// Many workers at once, and a reconciler, make one refund (G3).
func TestRefund_WorkersAtOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.lateSuccess()
	b.sim.AddFault(stripesim.Fault{Operation: "refunds.create", Fault: "delay", DelayMS: 30})
	job := outbox.Job{Effect: b.effect(id, domain.EffectRefund)}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			p := b.engine()
			for range 3 {
				_, _ = p.Refund(b.ctx, job)
				_, _ = p.ResolveDoubt(b.ctx)
			}
		})
	}
	all.Wait()
	require.Equal(t, "done", b.healRefund(id))
	b.givenBack(id, "1")
}

// An operator may replay a refund at any moment (G7): what is done is refused, what is on its way goes on under its key.
func TestRefund_ReplayIsSafe(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.lateSuccess()
	effect := b.effect(id, domain.EffectRefund)
	b.sim.AddFault(stripesim.Fault{Operation: "refunds.create", Fault: "error_503_after"})
	_, err := b.engine().Refund(b.ctx, outbox.Job{Effect: effect})
	require.NoError(t, err)
	for range 2 {
		_, err := outbox.Replay(b.ctx, b.db.Pool, effect, "ada", "the customer has called")
		require.NoError(t, err)
	}
	require.Equal(t, "done", b.healRefund(id))
	b.givenBack(id, "1")
	_, err = outbox.Replay(b.ctx, b.db.Pool, effect, "ada", "again")
	var refused *outbox.RefusedError
	require.ErrorAs(t, err, &refused)
}

// Above the ceiling a refund waits for a person, whose replay lets it pass (G7).
func TestRefund_CeilingOfAnHour(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.config.LateRefunds = 1
	first, second := b.lateSuccess(), b.lateSuccess()
	require.Equal(t, "done", b.healRefund(first))
	require.Equal(t, "parked", b.healRefund(second))
	require.Empty(t, b.refunds(second))
	page, err := outbox.List(b.ctx, b.db.Pool, outbox.Filter{Stuck: true, Kind: domain.EffectRefund})
	require.NoError(t, err)
	require.Len(t, page.Rows, 1)
	require.Contains(t, page.Rows[0].Reason, "within an hour")
	_, err = outbox.Replay(b.ctx, b.db.Pool, page.Rows[0].ID, "ada", "looked at")
	require.NoError(t, err)
	require.Equal(t, "done", b.healRefund(second))
	b.givenBack(first, "1")
	b.givenBack(second, "1")
}

// What a person has refunded at the provider before us counts as refunded, is said to be so, and is not refunded again (G3, G8).
func TestRefund_ByHandCounts(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.lateSuccess()
	intent := b.intent(id)
	out := b.gateway.Send(b.ctx, payments.Call{
		Operation: domain.OpRefund, IntentID: intent, Key: "by-hand", Params: payments.Params{"payment_intent": intent, "amount": "2500"},
	})
	require.Equal(t, payments.Executed, out.Class, out.Detail)
	b.config.Poll = 10 * time.Millisecond
	b.sim.AddFault(stripesim.Fault{Operation: "refunds.list", Fault: "list_page_empty"}) // a listing that denies the refusal proves nothing
	require.Equal(t, "done", b.healRefund(id))
	require.Len(t, b.refunds(id), 1)
	require.Equal(t, []string{"held", "failed", "refunded", "refund_failed"}, b.events(id), "theirs, and that ours is not made")
	require.Equal(t, []string{"dashboard 2500 succeeded", "late_success 2500 failed charge_already_refunded"}, b.rows(id))
}

// A refund that the provider accepts first and decides on later is told when it is decided; one that failed is parked, and a
// person's replay makes the next under its own key (G5, G8).
func TestRefund_PendingThenDecided(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.config.Poll = 10 * time.Millisecond
	id := b.lateSuccess("pm_card_pendingRefund")
	b.work(b.engine(), id, domain.EffectRefund)
	_, err := b.engine().ResolveDoubt(b.ctx)
	require.NoError(t, err)
	require.Equal(t, []string{"held", "failed"}, b.events(id), "nothing is told before it is decided")
	intent := b.intent(id)
	decide := func(outcome string) {
		_, err := b.sim.Act(stripesim.Action{Action: "settle_refund", PaymentIntent: intent, Outcome: outcome})
		require.NoError(t, err)
	}
	decide("failed")
	require.Equal(t, "parked", b.healRefund(id))
	require.Equal(t, []string{"held", "failed", "refund_failed"}, b.events(id))
	_, err = outbox.Replay(b.ctx, b.db.Pool, b.effect(id, domain.EffectRefund), "ada", "once more")
	require.NoError(t, err)
	b.work(b.engine(), id, domain.EffectRefund)
	decide("succeeded")
	require.Equal(t, "done", b.healRefund(id))
	require.Equal(t, []string{"held", "failed", "refund_failed", "refunded"}, b.events(id))
	require.Equal(t, 2, b.sent("refunds.create"))
	require.Len(t, b.refunds(id), 2)
}

// A definite refusal is no doubt: it is parked with the provider's reason, and told (G5, G8).
func TestRefund_DefiniteRefusal(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.lateSuccess()
	b.exec(`UPDATE payments SET amount_received = 2501`) // one more than the provider knows of
	b.exec(`UPDATE refunds SET amount = 2501`)
	require.Equal(t, "parked", b.healRefund(id))
	require.Empty(t, b.refunds(id))
	require.Equal(t, []string{"held", "failed", "refund_failed"}, b.events(id))
}
