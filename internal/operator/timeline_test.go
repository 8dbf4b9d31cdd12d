package operator_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/internal/operator"
	"holdfast/outbox"
	"holdfast/payments"
	"holdfast/payments/stripesim"
)

// A whole life of a booking (G8, G9): a card that is declined, another one whose confirm has lost its answer, a replay, a refund
// by request, a dispute that is won, webhooks, events on the stream. Expected: one line of time that tells of each, each after
// what caused it; nothing personal, no secret, no whole key of the client's; what users have written comes out as it went in.
func TestTimeline_TellsOfAll(t *testing.T) {
	t.Parallel()
	b := newMoneyBed(t).withBroker()
	desk := payments.NewDesk(b.bookings, noWaker{}, payments.CardLimits{}, quiet)
	const evil = `<script>alert("x")</script>`

	id := b.book("pm_card_chargeDeclined")
	b.work(id, domain.EffectCharge)
	b.stands(id, "held", "declined")
	ask := payments.Ask{Client: b.client, Booking: id, Key: "another-card-please"}
	_, err := desk.ChangeCard(b.ctx, ask, "pm_card_visa", func(payments.View, bool) (int, []byte, error) { return 202, []byte(`{}`), nil })
	require.NoError(t, err)
	b.sim.AddFault(stripesim.Fault{Operation: "payment_intents.confirm", Fault: "error_503_after"})
	b.turn(id, domain.EffectCharge)
	_, err = outbox.Replay(b.ctx, b.db.Pool, b.effect(id, domain.EffectCharge).ID, "ops@example.org", evil)
	require.NoError(t, err)
	b.work(id, domain.EffectCharge)
	b.stands(id, "confirmed", "succeeded")
	intent := b.intent(id)
	_, err = desk.Refund(b.ctx, payments.Ask{Client: b.client, Booking: id, Key: "money"}, payments.RefundRequest{Amount: 1000, Reason: evil, By: "finance@example.org"},
		func(payments.RefundDecision) (int, []byte, error) { return 201, []byte(`{}`), nil })
	require.NoError(t, err)
	b.work(id, domain.EffectRefund)
	b.happens(stripesim.Action{Action: "open_dispute", PaymentIntent: intent})
	b.hear("charge.dispute.created", intent)
	b.happens(stripesim.Action{Action: "close_dispute", PaymentIntent: intent, Outcome: "won"})
	b.hear("charge.dispute", intent)
	b.hear("payment_intent.succeeded", intent)
	_, err = b.engine().ReadTransactions(b.ctx, time.Now().Add(-time.Hour), time.Now().Add(time.Hour))
	require.NoError(t, err)
	b.work(id, domain.EffectPublish)

	told, err := b.operators().Timeline(b.ctx, id)
	require.NoError(t, err)
	require.False(t, told.More)
	require.Equal(t, []any{id, "Room <1>", domain.BookingConfirmed, domain.PaymentSucceeded, domain.Money{Amount: 2500, Currency: "EUR"}},
		[]any{told.Booking.ID, told.Booking.Resource, told.Booking.Status, told.Booking.PaymentStatus, told.Booking.Total})
	require.True(t, slices.IsSortedFunc(told.Entries, func(x, y operator.Entry) int { return time.Time(x.At).Compare(time.Time(y.At)) }))

	line := line{t, told.Entries}
	line.inOrder("booking accepted", "charge queued", "create sent", "payment intent made", "confirm sent", "payment declined told", "charge queued",
		"update sent", "confirm sent", "replay", "money taken", "confirmed told", "refund begun", "refund sent", "refund succeeded", "refunded told",
		"charge.dispute.created", "dispute opened", "disputed told", "charge.dispute.closed", "dispute won")
	line.count(map[string]int{"key": 3, "send": 5, "intent": 1, "charge": 1, "dispute": 2, "act": 2})
	line.fact("key", "request under a client's key", "key", "another-…")
	line.fact("act", "replay", "by", "ops@example.org")
	line.fact("charge", "money taken", "received", "25.00 EUR")
	line.fact("event", "confirmed told", "stream", "BOOKINGS")
	line.fact("send", "confirm sent", "sends", "2")
	line.fact("webhook", "charge.dispute.created", "via", "webhook")
	require.Equal(t, evil, line.find("act", "replay").Detail, "words are data")
	require.Equal(t, evil, line.find("refund", "refund begun").Detail)
	charge := b.sim.Ledger().Succeeded(id.String())
	require.Len(t, charge, 1)
	require.Equal(t, charge[0].ID, line.find("charge", "money taken").ID)
	for _, c := range told.Entries {
		if c.What == "send" {
			require.NotEmpty(t, value(c, "request id"), "%+v", c)
			require.NotEmpty(t, value(c, "outcome"))
		}
	}

	text, err := json.Marshal(told)
	require.NoError(t, err)
	for _, secret := range []string{"Ada", "ada@", "pm_card", "_secret_", "another-card", apiKey, webhookSecret.Reveal(), "null"} {
		require.NotContains(t, string(text), secret)
	}
	_, err = b.operators().Timeline(b.ctx, domain.NewID[domain.BookingID]())
	require.ErrorIs(t, err, domain.ErrNotFound)
}

// Of a booking with more to tell than anybody reads, the newest is told, and that there is more.
func TestTimeline_IsBounded(t *testing.T) {
	t.Parallel()
	b := newMoneyBed(t)
	id := b.confirmed()
	b.exec(`
		INSERT INTO provider_events (id, type, livemode, object_type, object_id, intent_id, booking_id, payment_id, request_key, created_at, via)
		SELECT 'evt_' || n, 'payment_intent.succeeded', false, 'payment_intent', $1, $1, $2, '', '', clock_timestamp(), 'webhook'
		  FROM generate_series(1, 1100) n`, b.intent(id), id.String())
	told, err := b.operators().Timeline(b.ctx, id)
	require.NoError(t, err)
	require.Len(t, told.Entries, 1000)
	require.True(t, told.More)
	require.Equal(t, "evt_1100", told.Entries[999].ID)
}

// line is a timeline that is asked about.
type line struct {
	t       *testing.T
	entries []operator.Entry
}

// inOrder checks that entries with these titles are there, each after the one before.
func (l line) inOrder(titles ...string) {
	l.t.Helper()
	at := 0
	for _, title := range titles {
		next := slices.IndexFunc(l.entries[at:], func(e operator.Entry) bool { return e.Title == title })
		require.NotEqual(l.t, -1, next, "no %q after %d of\n%s", title, at, l)
		at += next + 1
	}
}

func (l line) count(want map[string]int) {
	l.t.Helper()
	for what, n := range want {
		all := slices.DeleteFunc(slices.Clone(l.entries), func(e operator.Entry) bool { return e.What != what })
		require.Len(l.t, all, n, "%s: %s", what, l)
	}
}

// find returns the newest entry with a title.
func (l line) find(what, title string) operator.Entry {
	l.t.Helper()
	for _, e := range slices.Backward(l.entries) {
		if e.What == what && e.Title == title {
			return e
		}
	}
	require.Fail(l.t, "not told", "%s %s in\n%s", what, title, l)
	return operator.Entry{}
}

// fact checks that one of the entries with a title has it.
func (l line) fact(what, title, name, want string) {
	l.t.Helper()
	require.True(l.t, slices.ContainsFunc(l.entries, func(e operator.Entry) bool {
		return e.What == what && e.Title == title && value(e, name) == want
	}), "%s %s: %s = %s is not in\n%s", what, title, name, want, l)
}

func value(e operator.Entry, name string) string {
	for _, f := range e.Facts {
		if f.Name == name {
			return f.Value
		}
	}
	return ""
}

func (l line) String() string {
	var all strings.Builder
	for _, e := range l.entries {
		fmt.Fprintln(&all, e.At, e.What, e.Title, e.ID, e.Detail, e.Facts)
	}
	return all.String()
}
