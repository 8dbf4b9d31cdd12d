package payments_test

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/internal/bookings"
	"holdfast/internal/ledger"
	"holdfast/internal/testsize"
	"holdfast/outbox"
	"holdfast/payments"
	"holdfast/payments/stripesim"
)

// For a long run, or one history again:
//
//	go run ./internal/testdb/cmd/withdb -- go test ./payments -run TestMoney_HistoriesAgree -timeout 1h -v -money.histories=1000
//	go run ./internal/testdb/cmd/withdb -- go test ./payments -run TestMoney_HistoriesAgree -money.seed=17 -money.histories=1
var (
	moneyHistories = flag.Int("money.histories", testsize.Of(16, 40), "how many random histories of money TestMoney_HistoriesAgree goes through")
	moneySeed      = flag.Uint64("money.seed", 1, "the seed of the first; each next one has the next")
)

// purse is a currency as this test knows it: by a table of its own.
type purse struct {
	currency string
	price    int64 // our minor units
	step     int64 // what refunds are multiples of, likewise
	sent     int64 // the provider's units for one of ours
}

var purses = []purse{{"USD", 1999, 1, 1}, {"JPY", 2500, 1, 1}, {"KWD", 12340, 10, 1}, {"UGX", 9000, 1, 100}}

// For random histories of charges, refunds (by request, at the dashboard, failing late) and disputes, with faults, twins, deaths,
// and webhooks that are lost, doubled and late: once all is well again, what is left of a payment, its rows and the provider's
// ledger agree to the unit (G3, G5, G8).
func TestMoney_HistoriesAgree(t *testing.T) {
	t.Parallel()
	for n := range min(len(purses), *moneyHistories) {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.config.SweepInterval, b.config.SweepLag, b.config.SweepOverlap = time.Millisecond, time.Millisecond, 3*time.Second
			b.config.Poll = time.Millisecond
			_, err := b.engine().SweepEvents(b.ctx) // from here on
			require.NoError(t, err)
			p := purses[(*moneySeed+uint64(n))%uint64(len(purses))]
			// Paid out in the same currency, so that the account's own transactions can be added up.
			require.NoError(t, b.sim.SetSettlement(stripesim.Settlement{Currency: strings.ToLower(p.currency)}))
			r, err := b.bookings.CreateResource(b.ctx, domain.Resource{
				Name: p.currency, TimeZone: "Europe/Berlin", Places: 1, UnitMinutes: 60,
				Price: domain.Money{Amount: p.price, Currency: p.currency}, Hold: time.Hour,
			})
			require.NoError(t, err)
			for i := n; i < *moneyHistories; i += len(purses) {
				seed := *moneySeed + uint64(i)
				h := &history{bed: b, r: rand.New(rand.NewPCG(seed, 0)), purse: p, resource: r.ID}
				h.run(seed)
			}
			theirs := b.sim.Ledger()
			require.NoError(t, theirs.Check())
			b.closeTheBook(theirs, p.sent)
			met := map[string]int{"charges": len(theirs.Succeeded(""))}
			for _, f := range theirs.Refunds {
				met["refunds "+f.Status]++
				if f.IdempotencyKey == "" {
					met["refunds at the dashboard"]++
				}
			}
			for _, d := range theirs.Disputes {
				met["disputes "+d.Status]++
			}
			t.Logf("%s: %v", p.currency, met)
		})
	}
}

// closeTheBook reads the provider's transactions: then clearing is zero for every payment, and the account's balance is the
// provider's own (G8).
func (b *bed) closeTheBook(l stripesim.Ledger, sent int64) {
	b.Helper()
	_, err := b.engine().ReadTransactions(b.ctx, b.sim.Now().Add(-24*time.Hour), b.sim.Now().Add(time.Hour))
	require.NoError(b, err)
	var open, once, twice int
	b.scan(`SELECT count(*) FROM ledger_entries`, &once)
	b.scan(`SELECT count(*) FROM (
		SELECT 1 FROM ledger_entries GROUP BY payment_id, currency
		HAVING sum(CASE WHEN debit = 'clearing' THEN amount WHEN credit = 'clearing' THEN -amount ELSE 0 END) <> 0) AS x`, &open)
	require.Zero(b, open, "payments on which the two sides differ")
	accounts, err := ledger.Trial(b.ctx, b.db.Pool)
	require.NoError(b, err)
	var debit, credit, balance, theirs int64
	for _, a := range accounts {
		debit, credit = debit+a.Debit, credit+a.Credit
		if a.Account == "provider_balance" {
			balance += a.Debit - a.Credit
		}
	}
	for _, n := range l.Balance {
		theirs += n
	}
	require.Equal(b, debit, credit)
	require.Equal(b, theirs, balance*sent)
	again, err := ledger.CatchUp(b.ctx, b.db.Pool, time.Time{})
	require.NoError(b, err)
	require.Zero(b, again, "every settlement has made its own entries")
	_, err = b.engine().ReadTransactions(b.ctx, b.sim.Now().Add(-24*time.Hour), b.sim.Now().Add(time.Hour))
	require.NoError(b, err)
	b.scan(`SELECT count(*) FROM ledger_entries`, &twice)
	require.Equal(b, once, twice, "what is read twice is entered once")
}

// history is what becomes of the money of one booking.
type history struct {
	*bed

	r        *rand.Rand
	purse    purse
	resource domain.ResourceID
	id       domain.BookingID
	pays     string // the intent
	asked    int
	acts     []string
}

func (h *history) note(f string, args ...any) { h.acts = append(h.acts, fmt.Sprintf(f, args...)) }

func (h *history) oneOf(words ...string) string { return words[h.r.IntN(len(words))] }

func (h *history) run(seed uint64) {
	h.Helper()
	over := false
	defer func() {
		if !over {
			h.Logf("the history in %s of -money.seed=%d -money.histories=1:\n%s\n%s", h.purse.currency, seed, strings.Join(h.acts, "\n"), h.tale(h.id))
		}
	}()
	h.start = h.start.Add(time.Hour)
	card := h.oneOf("pm_card_visa", "pm_card_visa", "pm_card_visa", "pm_card_pendingRefund", "pm_card_createDispute", "pm_card_createDisputeInquiry")
	answer, err := h.bookings.Accept(h.ctx, h.client, domain.NewID[domain.EffectID]().String(), bookings.Request{
		ResourceID: h.resource, Start: h.start, End: h.start.Add(time.Hour), CustomerName: "Ada", CustomerEmail: "ada@example.org", PaymentMethod: card,
	})
	require.NoError(h, err)
	h.id, err = domain.ParseID[domain.BookingID](path.Base(answer.Location))
	require.NoError(h, err)
	h.note("paid by %s", card)
	if h.r.IntN(4) == 0 {
		h.fault("payment_intents.confirm", "reset_after", "error_503_after", "hang_after")
	}
	h.work(h.engine(), h.id, domain.EffectCharge)
	h.bed.reconcile(h.engine(), h.id)
	h.pays = h.intent(h.id)
	for range 4 + h.r.IntN(9) {
		h.act()
	}
	h.heal()
	h.judge()
	over = true
}

func (h *history) fault(operation string, names ...string) {
	f := stripesim.Fault{Operation: operation, Fault: h.oneOf(names...), Times: 1 + h.r.IntN(3)}
	if f.Fault == "hang_after" {
		f.DelayMS, f.Times = 2*int(stripeTimeout.Milliseconds()), 1
	}
	h.note("fault %s of %s, %d times", f.Fault, operation, f.Times)
	h.sim.AddFault(f)
}

// some is an amount of ours that may be asked for: any part, all, or too much.
func (h *history) some() int64 {
	return (1 + h.r.Int64N(h.purse.price*5/4/h.purse.step)) * h.purse.step / (1 + h.r.Int64N(3)) / h.purse.step * h.purse.step
}

func (h *history) act() {
	h.Helper()
	switch h.r.IntN(16) {
	case 0, 1:
		h.ask(1)
	case 2: // a twin under the same key, or rivals for what is left
		h.ask(2 + h.r.IntN(2))
	case 3, 4:
		h.carryOn(h.r.IntN(4))
	case 5:
		h.fault("refunds.create", "reset_before", "reset_after", "error_500_before", "error_500_after", "error_503_after", "error_502", "bad_body", "in_use_409",
			"rate_limit_429", "hang_after")
	case 6:
		h.fault(h.oneOf("refunds.list", "disputes.list"), "unauthorized_401", "list_page_empty")
	case 7:
		h.happens(stripesim.Action{Action: "refund", Amount: max(h.some(), h.purse.step) * h.purse.sent})
	case 8:
		h.happens(stripesim.Action{Action: h.oneOf("fail_refund", "settle_refund")})
	case 9:
		h.happens(stripesim.Action{Action: "open_dispute", Amount: max(h.some(), h.purse.step) * h.purse.sent, Inquiry: h.r.IntN(3) == 0})
	case 10:
		h.happens(stripesim.Action{Action: h.oneOf("escalate_dispute", "close_dispute")}) // won, or an inquiry's end
	case 11, 12:
		h.happens(stripesim.Action{Action: "close_dispute", Outcome: h.oneOf("lost", "lost", "won")})
	case 13:
		h.hear()
	case 14:
		h.byHand("resolve")
	case 15:
		h.byHand("discard")
	}
}

// happens does something at the provider, past us. At the wrong moment it is refused there.
func (h *history) happens(a stripesim.Action) {
	a.PaymentIntent = h.pays
	_, err := h.sim.Act(a)
	h.note("%s %d %s: %v", a.Action, a.Amount, a.Outcome, err)
}

// ask asks for refunds at once: half the time under one key, else as rivals.
func (h *history) ask(times int) {
	h.Helper()
	amount, twins := h.some(), h.r.IntN(2) == 0
	h.asked++
	answers := make([]string, times)
	together(times, func(i int) {
		key := fmt.Sprintf("%s-%d", h.id, h.asked)
		if !twins {
			key += fmt.Sprint("-", i)
		}
		answer, err := payments.NewDesk(h.bookings, noWaker{}, payments.CardLimits{}, nil).Refund(h.ctx, payments.Ask{Client: h.client, Booking: h.id, Key: key},
			payments.RefundRequest{Amount: amount, Reason: "history", By: "ada"},
			func(d payments.RefundDecision) (int, []byte, error) {
				if d.Refund == nil {
					return 409, []byte(d.Refusal), nil
				}
				return 201, []byte("begun"), nil
			})
		answers[i] = cmp.Or(string(answer.Body), fmt.Sprint(err))
	})
	h.note("asked for %d, twins %t: %v", amount, twins, answers)
	for _, a := range answers {
		require.Contains(h, []string{"begun", payments.RefundDisputed, payments.RefundExceeds, payments.RefundNotPaid}, a)
	}
}

// carryOn lets workers and a reconciler do what there is, once; the worker may have a twin, or die before or after its send.
func (h *history) carryOn(how int) {
	h.Helper()
	var pending []domain.EffectID
	h.scan(`SELECT coalesce(array_agg(id ORDER BY id), '{}') FROM outbox WHERE booking_id = $1 AND kind = 'refund' AND status = 'pending'`, &pending, h.id)
	h.note("worked on %d refunds, way %d", len(pending), how)
	for _, effect := range pending {
		job := outbox.Job{Effect: effect, Kind: domain.EffectRefund}
		if how >= 2 {
			func() {
				defer func() { _ = recover() }()
				_, _ = h.engineOn(dying{h.gateway, how == 3}).Refund(h.ctx, job)
			}()
			continue
		}
		together(1+how, func(int) {
			_, err := h.engine().Refund(h.ctx, job)
			if err != nil && !strings.Contains(err.Error(), "is of no refund") {
				require.NoError(h, err)
			}
		})
	}
	h.exec(`UPDATE outbox SET due_at = clock_timestamp() WHERE booking_id = $1 AND status = 'in_doubt'`, h.id)
	_, err := h.engine().ResolveDoubt(h.ctx)
	require.NoError(h, err)
}

// byHand lets a person resolve, or park and discard, one of the refunds that are not finished, while workers may be at it. What may not be
// discarded is replayed.
func (h *history) byHand(act string) {
	h.Helper()
	var open []domain.EffectID
	h.scan(`SELECT coalesce(array_agg(id ORDER BY id), '{}') FROM outbox WHERE booking_id = $1 AND kind = 'refund' AND status IN ('pending', 'in_doubt', 'parked')`, &open, h.id)
	if len(open) == 0 {
		return
	}
	e := open[h.r.IntN(len(open))]
	decide := h.engine().ResolveIn
	if act == "discard" {
		h.exec(`UPDATE outbox SET status = 'parked' WHERE id = $1`, e)
		decide = h.engine().DiscardIn
	}
	effect, err := outbox.Load(h.ctx, h.db.Pool, e)
	require.NoError(h, err)
	reading, err := h.engine().Read(h.ctx, effect)
	if errors.Is(err, payments.ErrUnread) {
		h.note("%s %s: unread", act, e)
	} else {
		require.NoError(h, err)
		if h.r.IntN(3) == 0 { // something else happens first
			h.carryOn(h.r.IntN(4))
		}
		said, refusal := h.decideOn(effect, reading, decide)
		h.note("%s %s: %s%v", act, e, said, refusal)
		if act == "discard" && refusal == nil {
			h.exec(`UPDATE outbox SET status = 'discarded', finished_at = clock_timestamp() WHERE id = $1`, e)
		}
	}
	if act == "discard" {
		_, _ = outbox.Replay(h.ctx, h.db.Pool, e, "ada", "it may not be discarded")
	}
}

// hear delivers some of what the provider has told of the intent, in any order and some of it twice, and acts on it.
func (h *history) hear() {
	h.Helper()
	kind := h.oneOf("charge.refunded", "refund.created", "refund.updated", "refund.failed", "charge.dispute.created", "charge.dispute.updated",
		"charge.dispute.closed", "charge.dispute.funds_withdrawn", "charge.dispute.funds_reinstated")
	bodies := h.told(kind, h.pays)
	h.r.Shuffle(len(bodies), func(i, j int) { bodies[i], bodies[j] = bodies[j], bodies[i] })
	for _, body := range bodies {
		for range h.r.IntN(3) {
			h.deliver(body)
		}
	}
	h.note("heard some of %d %s", len(bodies), kind)
	h.settleEvents(h.engine())
}

// heal lets the provider answer and decide, everybody work, days pass for keys that wait for them, and what no webhook brought
// be swept up, until nothing is left to do.
func (h *history) heal() {
	h.Helper()
	h.sim.ClearFaults()
	h.note("healed")
	p := h.engine()
	for deadline, calm := time.Now().Add(time.Minute), 0; calm < 2; {
		require.True(h, time.Now().Before(deadline), "a history that never ends")
		for {
			if _, err := h.sim.Act(stripesim.Action{Action: "settle_refund", PaymentIntent: h.pays}); err != nil {
				break
			}
		}
		h.carryOn(0)
		h.exec(`
			UPDATE provider_calls SET first_sent_at = first_sent_at - interval '25 hours', last_sent_at = last_sent_at - interval '25 hours'
			 WHERE refund_id IN (SELECT f.id FROM refunds f JOIN outbox o ON o.id = f.effect_id
			                      WHERE o.booking_id = $1 AND o.status = 'in_doubt' AND o.last_error LIKE '%next key follows%')`, h.id)
		h.exec(`UPDATE provider_events_sweep SET due_at = clock_timestamp()`)
		_, err := p.SweepEvents(h.ctx)
		require.NoError(h, err)
		h.settleEvents(p)
		var open int
		h.scan(`SELECT (SELECT count(*) FROM outbox WHERE booking_id = $1 AND kind = 'refund' AND status IN ('pending', 'in_doubt'))
		             + (SELECT count(*) FROM provider_events WHERE status = 'pending')`, &open, h.id)
		calm++
		if open > 0 {
			calm = 0
			h.pause(5 * time.Millisecond)
		}
	}
	var parked int
	h.scan(`SELECT count(*) FROM provider_events WHERE status = 'parked'`, &parked)
	require.Zero(h, parked)
}

// judge compares the rows with the provider's ledger, by sums of its own.
func (h *history) judge() {
	h.Helper()
	ledger := h.sim.Ledger()
	var captured, back, away int64
	contested := false
	for _, c := range ledger.Succeeded(h.id.String()) {
		captured += c.AmountCaptured
	}
	theirs := map[string]string{}
	for _, f := range ledger.Refunds {
		if f.PaymentIntent == h.pays && f.Status != "failed" && f.Status != "canceled" {
			back += f.Amount
			theirs[f.ID] = fmt.Sprint(f.Amount, " ", f.Status)
		}
	}
	disputes := map[string]string{}
	for _, d := range ledger.Disputes {
		if d.PaymentIntent != h.pays {
			continue
		}
		disputes[d.ID] = fmt.Sprint(d.Amount, " ", d.Status)
		if slices.Contains([]string{"needs_response", "under_review", "lost"}, d.Status) {
			away += d.Amount
		}
		contested = contested || d.Status == "needs_response" || d.Status == "under_review"
	}
	require.Equal(h, h.purse.price*h.purse.sent, captured, "what was charged")

	balance := h.balance(h.id)
	sent := func(ours int64) int64 { return ours * h.purse.sent }
	require.Equal(h, []int64{captured, back, away, max(captured-back-away, 0)},
		[]int64{sent(balance.Captured), sent(balance.Refunded), sent(balance.Disputed), sent(balance.Refundable)}, "captured, refunded, disputed, left")
	require.Equal(h, contested, balance.Contested)
	require.LessOrEqual(h, back, captured, "G3")
	require.Equal(h, theirs, h.books(`SELECT coalesce(f.provider_refund_id, f.id::text), f.amount * $2::bigint || ' ' || f.status
		FROM refunds f JOIN payments p ON p.id = f.payment_id WHERE p.booking_id = $1 AND f.status <> 'failed'`), "refunds")
	require.Equal(h, disputes, h.books(`SELECT d.id, d.amount * $2::bigint || ' ' || d.status
		FROM disputes d JOIN payments p ON p.id = d.payment_id WHERE p.booking_id = $1`), "disputes")
	var moved int64 // the account's own rows: what came in, less all that went out
	for _, t := range ledger.BalanceTransactions {
		if t.PaymentIntent == h.pays {
			moved += t.Amount
		}
	}
	require.Equal(h, captured-back-away, moved, "the account's transactions")

	var book []int64 // our ledger: nobody has posted here by hand, and no entry is missing
	h.scan(`
		SELECT ARRAY[coalesce(sum(CASE WHEN credit = 'sales' THEN amount WHEN debit = 'sales' THEN -amount END), 0),
		             coalesce(sum(CASE WHEN debit = 'refunds' THEN amount WHEN credit = 'refunds' THEN -amount END), 0),
		             coalesce(sum(CASE WHEN debit = 'disputes' THEN amount WHEN credit = 'disputes' THEN -amount END), 0),
		             coalesce(sum(CASE WHEN debit = 'clearing' THEN amount WHEN credit = 'clearing' THEN -amount END), 0)]
		  FROM ledger_entries WHERE origin = 'book' AND payment_id = (SELECT id FROM payments WHERE booking_id = $1)`, &book, h.id)
	require.Equal(h, []int64{balance.Captured, balance.Refunded, balance.Disputed, balance.Captured - balance.Refunded - balance.Disputed}, book,
		"the ledger")
}

// books reads one column by another.
func (h *history) books(sql string) map[string]string {
	h.Helper()
	rows, err := h.db.Pool.Query(h.ctx, sql, h.id, h.purse.sent)
	require.NoError(h, err)
	defer rows.Close()
	all := map[string]string{}
	for rows.Next() {
		var key, value string
		require.NoError(h, rows.Scan(&key, &value))
		all[key] = value
	}
	require.NoError(h, rows.Err())
	return all
}
