package payments_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/outbox"
	"holdfast/payments"
	"holdfast/payments/stripesim"
)

// paidFor is a confirmed booking of 2500 EUR.
func (b *bed) paidFor(method ...string) domain.BookingID {
	b.Helper()
	id := b.book(append(method, "pm_card_visa")[0])
	b.work(b.engine(), id, domain.EffectCharge)
	booking, _, _ := b.statuses(id)
	require.Equal(b, "confirmed", booking, b.tale(id))
	return id
}

func (b *bed) desk() *payments.Desk {
	return payments.NewDesk(b.bookings, noWaker{}, payments.CardLimits{}, nil)
}

// ask asks for a refund under a key. It returns its effect, or why it was refused.
func (b *bed) ask(id domain.BookingID, key string, amount int64) (effect domain.EffectID, refusal string) {
	b.Helper()
	answer, err := b.desk().Refund(b.ctx, payments.Ask{Client: b.client, Booking: id, Key: key},
		payments.RefundRequest{Amount: amount, Reason: "a test", By: "ada"},
		func(d payments.RefundDecision) (int, []byte, error) {
			if d.Refund == nil {
				return 409, []byte(d.Refusal), nil
			}
			return 201, []byte(d.Refund.ID.String()), nil
		})
	require.NoError(b, err)
	if answer.Status != 201 {
		return effect, string(answer.Body)
	}
	b.scan(`SELECT effect_id FROM refunds WHERE id = $1::uuid`, &effect, string(answer.Body))
	return effect, ""
}

// heal carries a refund's effect on, as worker and reconciler would, until it is finished or parked, and lets days pass where it
// waits for them. It returns the effect's status.
func (b *bed) heal(effect domain.EffectID) (status string) {
	b.Helper()
	p := b.engine()
	for deadline := time.Now().Add(time.Minute); ; b.pause(5 * time.Millisecond) {
		var why string
		require.NoError(b, b.db.Pool.QueryRow(b.ctx, `SELECT status, coalesce(last_error, '') FROM outbox WHERE id = $1`, effect).Scan(&status, &why))
		switch status {
		case "pending":
			_, err := p.Refund(b.ctx, outbox.Job{Effect: effect, Kind: domain.EffectRefund})
			require.NoError(b, err)
		case "in_doubt":
			if why == "the refund's key can be sent no more, and may still bring it; the next key follows" {
				b.aDayPasses(effect)
			}
			_, err := p.ResolveDoubt(b.ctx)
			require.NoError(b, err)
		default:
			return status
		}
		require.True(b, time.Now().Before(deadline), "a refund that never ends: %s", why)
	}
}

// aDayPasses for the sends of one refund, and for the provider's memory of every key.
func (b *bed) aDayPasses(effect domain.EffectID) {
	b.Helper()
	b.exec(`UPDATE provider_calls SET first_sent_at = first_sent_at - interval '25 hours', last_sent_at = last_sent_at - interval '25 hours'
		WHERE refund_id = (SELECT id FROM refunds WHERE effect_id = $1)`, effect)
	b.exec(`UPDATE outbox SET due_at = clock_timestamp() WHERE id = $1 AND status = 'in_doubt'`, effect)
	b.sim.Advance(25 * time.Hour)
}

// paidBack is what the provider has given back of a booking: the sum of its refunds that have not failed, and their keys.
func (b *bed) paidBack(id domain.BookingID) (sum int64, keys []string) {
	b.Helper()
	for _, r := range b.refunds(id) {
		if r.Status == "succeeded" || r.Status == "pending" {
			sum += r.Amount
			keys = append(keys, r.IdempotencyKey)
		}
	}
	return sum, keys
}

// booksAgree checks that our rows give back what the provider has given back, each of its refunds once, and no more than was taken.
func (b *bed) booksAgree(id domain.BookingID) {
	b.Helper()
	theirs, ours := map[string]string{}, map[string]string{}
	for _, r := range b.refunds(id) {
		theirs[r.ID] = fmt.Sprint(r.Amount, r.Status)
	}
	rows, err := b.db.Pool.Query(b.ctx, `SELECT f.provider_refund_id, f.amount || f.status FROM refunds f JOIN payments p ON p.id = f.payment_id
		WHERE p.booking_id = $1 AND f.status <> 'failed'`, id)
	require.NoError(b, err)
	defer rows.Close()
	for rows.Next() {
		var provider *string
		var row string
		require.NoError(b, rows.Scan(&provider, &row))
		require.NotNil(b, provider, "%s\n%s", row, b.tale(id))
		ours[*provider] = row
	}
	require.NoError(b, rows.Err())
	for refund, row := range theirs {
		if ours[refund] == "" { // only one that has given nothing back may be another key's
			require.Contains(b, row, "fail", "the provider has a refund that has no row: %v, %v", theirs, ours)
			delete(theirs, refund)
		}
	}
	require.Equal(b, theirs, ours, b.tale(id))
	sum, _ := b.paidBack(id)
	require.LessOrEqual(b, sum, int64(2500))
}

// Incident 18 (G3, G7, G8): 100 paid. Refund 40, lose the answer, retry: 40. Another honest 40: 80. Three parallel 30s on the last
// 20: none fits, all refused; never above 100; provider keys distinct.
func TestIncident18_PartialRefundsNeitherDoubleNorCollapse(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.paidFor()
	b.sim.AddFault(stripesim.Fault{Operation: "refunds.create", Fault: "reset_after"})
	first, refusal := b.ask(id, "r1", 1000)
	require.Empty(t, refusal)
	again, _ := b.ask(id, "r1", 1000)
	require.Equal(t, first, again, "a replay of the request is no second refund")
	require.Equal(t, "done", b.heal(first))
	sum, _ := b.paidBack(id)
	require.Equal(t, int64(1000), sum)
	second, _ := b.ask(id, "r2", 1000)
	_, err := b.engine().Refund(b.ctx, outbox.Job{Effect: second, Kind: domain.EffectRefund})
	require.NoError(t, err)
	sum, keys := b.paidBack(id)
	require.Equal(t, int64(2000), sum, "two equal refunds are two")
	require.Equal(t, "done", b.heal(second))
	require.Len(t, slices.Compact(keys), 2)
	var all sync.WaitGroup
	refusals := make([]string, 3)
	for i := range refusals {
		all.Go(func() { _, refusals[i] = b.ask(id, fmt.Sprint("r3-", i), 750) })
	}
	all.Wait()
	require.Equal(t, []string{payments.RefundExceeds, payments.RefundExceeds, payments.RefundExceeds}, refusals)
	sum, _ = b.paidBack(id)
	require.Equal(t, int64(2000), sum)
	rest, _ := b.ask(id, "r4", 0)
	require.Equal(t, "done", b.heal(rest))
	sum, _ = b.paidBack(id)
	require.Equal(t, int64(2500), sum)
	b.booksAgree(id)
	require.Equal(t, []string{"held", "confirmed", "refunded", "refunded", "refunded"}, b.events(id))
	booking, payment, taken := b.statuses(id)
	require.Equal(t, []any{"confirmed", "succeeded", true}, []any{booking, payment, taken}, "a refund ends no booking")
}

// The rest of two refunds of one booking by many workers and reconcilers at once (G3).
func TestRefund_TwoAtOnceByManyWorkers(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.paidFor()
	b.sim.AddFault(stripesim.Fault{Operation: "refunds.create", Fault: "delay", DelayMS: 20, Times: 2})
	one, _ := b.ask(id, "1", 1000)
	two, _ := b.ask(id, "2", 1000)
	var all sync.WaitGroup
	for range 4 {
		for _, effect := range []domain.EffectID{one, two} {
			all.Go(func() {
				p := b.engine()
				for range 3 {
					_, _ = p.Refund(b.ctx, outbox.Job{Effect: effect, Kind: domain.EffectRefund})
					_, _ = p.ResolveDoubt(b.ctx)
				}
			})
		}
	}
	all.Wait()
	require.Equal(t, []string{"done", "done"}, []string{b.heal(one), b.heal(two)})
	sum, _ := b.paidBack(id)
	require.Equal(t, int64(2000), sum)
	b.booksAgree(id)
}

// Each fault of a partial refund's send × where the worker dies × who carries on (G3, G5, G7): 1000 goes back, once, also where the
// key has died and a day has to pass, and never a second 1000 although there would be money for it. The usual run has one heir for
// each fault and death, in turn.
func TestRefundMatrix(t *testing.T) { //nolint:tparallel // the groups must have ended before they are counted
	t.Parallel()
	faults := slices.DeleteFunc(slices.Clone(matrixFaults), func(f string) bool { return f == "partial_500" })
	var ran, all atomic.Int64
	t.Run("cells", func(t *testing.T) {
		for _, heir := range matrixHeirs {
			t.Run(heir, func(t *testing.T) {
				t.Parallel()
				b := setup(t)
				b.config.MaxSends, b.config.Lease = 4, 10*time.Second
				for f, fault := range faults {
					for d, death := range matrixDeaths {
						if !inTurn(heir, f+d) {
							continue
						}
						all.Add(1)
						b.refundCell(cell{domain.OpRefund, fault, death, heir})
						ran.Add(1)
					}
				}
			})
		}
	})
	require.Equal(t, all.Load(), ran.Load(), "a cell did not run")
	t.Logf("refunds: %d cells ran", ran.Load())
}

func (b *bed) refundCell(c cell) {
	b.Helper()
	id := b.paidFor()
	effect, refusal := b.ask(id, "once", 1000)
	require.Empty(b, refusal)
	if c.fault != "" {
		fault := stripesim.Fault{Operation: "refunds.create", Fault: c.fault}
		if c.fault == "hang_after" || c.fault == "slow" {
			fault.DelayMS = 2 * int(stripeTimeout.Milliseconds())
		}
		b.sim.AddFault(fault)
	}
	job := outbox.Job{Effect: effect, Kind: domain.EffectRefund}
	gateway := &mortal{Gateway: b.gateway, send: c.send, death: c.death}
	worker := b.engineOn(gateway)
	func() {
		defer func() {
			if err, ok := recover().(error); ok && !errors.Is(err, errDied) {
				panic(err)
			}
		}()
		_, err := worker.Refund(b.ctx, job)
		require.NoError(b, err)
	}()
	switch c.heir {
	case "same worker":
		gateway.death = ""
		_, err := worker.Refund(b.ctx, job)
		require.NoError(b, err)
	case "reconciler":
		b.exec(`UPDATE outbox SET status = 'in_doubt', due_at = clock_timestamp() WHERE id = $1 AND status = 'pending'`, effect)
	case "operator":
		_, err := outbox.Replay(b.ctx, b.db.Pool, effect, "ops@example.org", "matrix")
		var refused *outbox.RefusedError
		require.True(b, err == nil || errors.As(err, &refused), "%v", err)
	}
	require.Equal(b, "done", b.heal(effect), "%s\n%s", c, b.tale(id))
	b.sim.ClearFaults()
	sum, keys := b.paidBack(id)
	require.Equal(b, int64(1000), sum, "%s\n%s", c, b.tale(id))
	require.Len(b, keys, 1, c)
	b.booksAgree(id)
	require.Equal(b, []string{"held", "confirmed", "refunded"}, b.events(id), c)
}

// A partial refund whose send has died, and that a listing leaves out, is not sent under another key before the provider has
// forgotten the first; and one that was executed then is found, and not sent again (G3).
func TestRefund_ADayBetweenSends(t *testing.T) {
	t.Parallel()
	for _, fault := range []string{"error_500_before", "error_500_after"} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			id := b.paidFor()
			effect, _ := b.ask(id, "1", 1000)
			b.sim.AddFault(stripesim.Fault{Operation: "refunds.create", Fault: fault})
			b.sim.AddFault(stripesim.Fault{Operation: "refunds.list", Fault: "list_page_empty"})
			_, err := b.engine().Refund(b.ctx, outbox.Job{Effect: effect, Kind: domain.EffectRefund})
			require.NoError(t, err)
			_, err = b.engine().ResolveDoubt(b.ctx) // the listing denies it
			require.NoError(t, err)
			require.Equal(t, 1, b.sent("refunds.create"), "absence proves nothing yet")
			b.aDayPasses(effect)
			require.Equal(t, "done", b.heal(effect))
			sum, keys := b.paidBack(id)
			require.Equal(t, int64(1000), sum)
			require.Len(t, keys, 1)
			b.booksAgree(id)
		})
	}
	t.Run("no answer for longer than a key lives", func(t *testing.T) {
		t.Parallel()
		b := setup(t)
		id := b.paidFor()
		effect, _ := b.ask(id, "1", 1000)
		require.Panics(t, func() {
			_, _ = b.engineOn(dying{b.gateway, true}).Refund(b.ctx, outbox.Job{Effect: effect, Kind: domain.EffectRefund})
		})
		b.aDayPasses(effect)
		require.Equal(t, "done", b.heal(effect))
		sum, _ := b.paidBack(id)
		require.Equal(t, int64(1000), sum, "a re-send would have executed as new")
		require.Equal(t, 1, b.sent("refunds.create"))
		b.booksAgree(id)
	})
}

// hearOfRefunds lets the inbox have every event that tells of a booking's refunds, once more where it has had it, and acts on them.
func (b *bed) hearOfRefunds(id domain.BookingID) {
	b.Helper()
	for _, kind := range []string{"charge.refunded", "charge.refund.updated", "refund.created", "refund.updated", "refund.failed"} {
		for _, event := range b.told(kind, b.intent(id)) {
			b.deliver(event)
		}
	}
	b.settleEvents(b.engine())
}

func (b *bed) perform(a stripesim.Action) {
	b.Helper()
	_, err := b.sim.Act(a)
	require.NoError(b, err)
}

// lookAgain makes every refund due that is watched, and looks.
func (b *bed) lookAgain() {
	b.Helper()
	b.exec(`UPDATE refunds SET watch_at = clock_timestamp() WHERE watch_at IS NOT NULL`)
	var n int
	for b.scan(`SELECT count(*) FROM refunds WHERE watch_at <= clock_timestamp()`, &n); n > 0; n-- {
		_, err := b.engine().WatchRefund(b.ctx)
		require.NoError(b, err)
	}
}

// Incident 19 (G5, G8): a refund is pending, then fails; or it succeeds, and fails days later, told by an event or by nobody. Each
// time it is told, the amount is left again, and a second one is possible.
func TestIncident19_ARefundThatFailsLater(t *testing.T) {
	t.Parallel()
	for _, way := range []string{"pending", "event", "nobody"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.config.Poll = 10 * time.Millisecond
			method := "pm_card_visa"
			if way == "pending" {
				method = "pm_card_pendingRefund"
			}
			id := b.paidFor(method)
			effect, _ := b.ask(id, "1", 2500)
			told := []string{"held", "confirmed", "refunded", "refund_failed"}
			intent := b.intent(id)
			if way == "pending" {
				b.work(b.engine(), id, domain.EffectRefund)
				_, err := b.engine().ResolveDoubt(b.ctx)
				require.NoError(t, err)
				require.Equal(t, []string{"held", "confirmed"}, b.events(id), "nothing is told before it is decided")
				require.Zero(t, b.balance(id).Refundable, "what is on its way is not left")
				told = slices.Delete(told, 2, 3)
				b.perform(stripesim.Action{Action: "settle_refund", PaymentIntent: intent, Outcome: "failed"})
				require.Equal(t, "done", b.heal(effect), "what a person has asked for is over, and not parked")
			} else {
				require.Equal(t, "done", b.heal(effect))
				require.Zero(t, b.balance(id).Refundable)
				b.perform(stripesim.Action{Action: "fail_refund", PaymentIntent: intent})
				if way == "event" {
					b.hearOfRefunds(id)
				} else {
					b.lookAgain()
				}
			}
			require.Equal(t, told, b.events(id), b.tale(id))
			require.Equal(t, int64(2500), b.balance(id).Refundable)
			b.booksAgree(id)
			b.hearOfRefunds(id)
			b.lookAgain()
			require.Equal(t, told, b.events(id), "told once")
			second, refusal := b.ask(id, "2", 2500)
			require.Empty(t, refusal)
			if way == "pending" {
				b.work(b.engine(), id, domain.EffectRefund)
				b.perform(stripesim.Action{Action: "settle_refund", PaymentIntent: intent})
			}
			require.Equal(t, "done", b.heal(second))
			require.Equal(t, append(told, "refunded"), b.events(id))
			sum, _ := b.paidBack(id)
			require.Equal(t, int64(2500), sum)
			b.booksAgree(id)
		})
	}
}

// Incident 19 (G5, G8): the provider refuses a refund because the charge is disputed, which we did not know. It is a definite
// refusal: failed with the provider's code, told, no job goes on, and nothing of it counts.
func TestIncident19_ARefundOfADisputedCharge(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.paidFor()
	effect, _ := b.ask(id, "1", 1000)
	b.perform(stripesim.Action{Action: "open_dispute", PaymentIntent: b.intent(id)})
	require.Equal(t, "done", b.heal(effect))
	require.Equal(t, []string{"requested 1000 failed charge_disputed"}, b.rows(id))
	require.Equal(t, []string{"held", "confirmed", "refund_failed"}, b.events(id))
	require.Equal(t, 1, b.sent("refunds.create"))
	sum, _ := b.paidBack(id)
	require.Zero(t, sum)
	_, err := outbox.Replay(b.ctx, b.db.Pool, effect, "ada", "once more")
	var refused *outbox.RefusedError
	require.ErrorAs(t, err, &refused, "it is over: whoever wants it asks anew")
}

// The late success of a charge that is disputed stays owed: parked, and a replay goes on once the dispute is over (G7).
func TestIncident19_AnOwedRefundOfADisputedCharge(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.lateSuccess()
	intent := b.intent(id)
	b.perform(stripesim.Action{Action: "open_dispute", PaymentIntent: intent})
	effect := b.effect(id, domain.EffectRefund)
	require.Equal(t, "parked", b.heal(effect))
	require.Equal(t, []string{"late_success 2500 failed charge_disputed"}, b.rows(id))
	b.perform(stripesim.Action{Action: "close_dispute", PaymentIntent: intent})
	_, err := outbox.Replay(b.ctx, b.db.Pool, effect, "ada", "the dispute is won")
	require.NoError(t, err)
	require.Equal(t, "done", b.heal(effect), b.tale(id))
	require.Equal(t, []string{"held", "failed", "refund_failed", "refunded"}, b.events(id))
	sum, _ := b.paidBack(id)
	require.Equal(t, int64(2500), sum)
	b.booksAgree(id)
}

// A late success whose refund fails weeks after it succeeded is owed again, and parked again (G5, G7).
func TestRefund_AnOwedRefundFailsLate(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.lateSuccess()
	require.Equal(t, "done", b.healRefund(id))
	b.perform(stripesim.Action{Action: "fail_refund", PaymentIntent: b.intent(id)})
	b.lookAgain()
	effect := b.effect(id, domain.EffectRefund)
	require.Equal(t, "parked", b.heal(effect), b.tale(id))
	_, err := outbox.Replay(b.ctx, b.db.Pool, effect, "ada", "another account of the customer's bank")
	require.NoError(t, err)
	require.Equal(t, "done", b.heal(effect))
	require.Equal(t, []string{"held", "failed", "refunded", "refund_failed", "refunded"}, b.events(id))
	sum, keys := b.paidBack(id)
	require.Equal(t, int64(2500), sum)
	require.Regexp(t, ":refund:2$", keys[0])
	b.booksAgree(id)
}

// Refunds made at the provider's dashboard are found, by an event or when listing; they get a row, count, are told, and may fail
// like any other (G8). Ours that find the rest gone are refused for good; of what is owed, the rest goes back.
func TestRefund_AtTheDashboard(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.paidFor()
	intent := b.intent(id)
	b.perform(stripesim.Action{Action: "refund", PaymentIntent: intent, Amount: 1500})
	b.hearOfRefunds(id)
	require.Equal(t, []string{"dashboard 1500 succeeded"}, b.rows(id))
	require.Equal(t, []string{"held", "confirmed", "refunded"}, b.events(id))
	require.Equal(t, int64(1000), b.balance(id).Refundable)
	_, refusal := b.ask(id, "1", 1001)
	require.Equal(t, payments.RefundExceeds, refusal)
	effect, _ := b.ask(id, "2", 1000)
	b.perform(stripesim.Action{Action: "refund", PaymentIntent: intent, Amount: 600}) // and nobody tells us
	require.Equal(t, "done", b.heal(effect))
	require.Equal(t, []string{"dashboard 600 succeeded", "dashboard 1500 succeeded", "requested 1000 failed"}, b.rows(id))
	require.Equal(t, int64(400), b.balance(id).Refundable)
	b.perform(stripesim.Action{Action: "fail_refund", PaymentIntent: intent})
	b.lookAgain()
	b.booksAgree(id)
	require.Equal(t, []string{"held", "confirmed", "refunded", "refunded", "refund_failed", "refund_failed"}, b.events(id))

	late := b.lateSuccess()
	b.perform(stripesim.Action{Action: "refund", PaymentIntent: b.intent(late), Amount: 600})
	require.Equal(t, "done", b.healRefund(late))
	require.Equal(t, []string{"dashboard 600 succeeded", "late_success 1900 succeeded"}, b.rows(late))
	sum, _ := b.paidBack(late)
	require.Equal(t, int64(2500), sum)
	b.booksAgree(late)
}

// Events of refunds say which, how much, why, and how much went back in all.
func TestRefund_EventsTellTheSum(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.paidFor()
	for i, amount := range []int64{1000, 500} {
		effect, _ := b.ask(id, fmt.Sprint(i), amount)
		require.Equal(t, "done", b.heal(effect))
	}
	b.perform(stripesim.Action{Action: "fail_refund", PaymentIntent: b.intent(id)})
	b.lookAgain()
	var payloads []string
	b.scan(`SELECT array_agg(payload->>'refund' ORDER BY event_seq) FROM outbox WHERE booking_id = $1 AND event_type LIKE 'refund%'`, &payloads, id)
	var sums []int64
	for _, text := range payloads {
		var data domain.RefundData
		require.NoError(t, json.Unmarshal([]byte(text), &data))
		require.NotEqual(t, uuid.Nil, data.RefundID.UUID)
		require.Equal(t, []any{"requested", "EUR"}, []any{data.Reason, data.Amount.Currency})
		sums = append(sums, data.Refunded.Amount)
	}
	require.Len(t, sums, 3)
	require.Equal(t, []int64{1000, 1500}, sums[:2])
	sum, _ := b.paidBack(id)
	require.Equal(t, sum, sums[2])
}

// A refund that has succeeded is looked at less and less often, and for thirty days (G5).
func TestRefund_WatchedForAMonth(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.paidFor()
	effect, _ := b.ask(id, "1", 1000)
	require.Equal(t, "done", b.heal(effect))
	var looks int
	var gone, wait time.Duration
	for {
		var next *time.Duration
		b.scan(`SELECT watch_at - clock_timestamp() FROM refunds`, &next)
		if next == nil {
			break
		}
		require.Greater(t, *next, wait*3/2, "the intervals grow")
		wait = min(*next, 128*time.Hour)
		gone += *next
		b.exec(`UPDATE refunds SET watch_at = clock_timestamp(), settled_at = settled_at - $1::interval`, *next)
		worked, err := b.engine().WatchRefund(b.ctx)
		require.NoError(t, err)
		require.True(t, worked)
		looks++
		require.Less(t, looks, 20)
	}
	require.GreaterOrEqual(t, gone, 30*24*time.Hour)
	require.Less(t, looks, 15)
}

// A replay of what is owed comes to an end also where nothing can be sent (G7): while a part of the charge is disputed it is parked
// again, and told no second time; where somebody has given it all back by hand meanwhile, it is over.
func TestRefund_AReplayThatCannotGoOn(t *testing.T) {
	t.Parallel()
	b := setup(t)
	disputed, gone := b.lateSuccess(), b.lateSuccess()
	for _, id := range []domain.BookingID{disputed, gone} {
		effect := b.effect(id, domain.EffectRefund)
		b.perform(stripesim.Action{Action: "open_dispute", PaymentIntent: b.intent(id), Amount: 1000})
		require.Equal(t, "parked", b.heal(effect))
	}
	b.exec(`
		INSERT INTO disputes (id, payment_id, amount, currency, reason, status, withdrawn, opened_at, created_at, updated_at)
		SELECT 'dp_' || id, id, 1000, 'EUR', 'fraudulent', 'needs_response', true, now(), now(), now() FROM payments WHERE booking_id = $1`, disputed)
	b.perform(stripesim.Action{Action: "close_dispute", PaymentIntent: b.intent(gone)})
	b.perform(stripesim.Action{Action: "refund", PaymentIntent: b.intent(gone)})
	for id, want := range map[domain.BookingID]string{disputed: "parked", gone: "done"} {
		effect := b.effect(id, domain.EffectRefund)
		_, err := outbox.Replay(b.ctx, b.db.Pool, effect, "ada", "once more")
		require.NoError(t, err)
		b.exec(`UPDATE outbox SET status = 'in_doubt', due_at = clock_timestamp() WHERE id = $1`, effect) // listed first
		require.Equal(t, want, b.heal(effect), b.tale(id))
	}
	require.Equal(t, []string{"held", "failed", "refund_failed"}, b.events(disputed))
	require.Equal(t, []string{"held", "failed", "refund_failed", "refunded"}, b.events(gone), "theirs")
	require.Equal(t, 2, b.sent("refunds.create"))
	b.booksAgree(gone)
}
