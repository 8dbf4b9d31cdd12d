package httpapi_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/internal/httpapi"
	"holdfast/payments"
)

func (b *bed) cancel(t *testing.T, booking answer, key string, body ...string) answer {
	t.Helper()
	return b.send(t, http.MethodPost, booking.header.Get("Location")+"/cancel", strings.NewReader(append(body, `{}`)[0]), b.bearer(),
		"Content-Type: application/json", "Idempotency-Key: "+key)
}

// preview reads what cancelling a booking would do.
func (b *bed) preview(t *testing.T, booking answer) (p httpapi.CancellationPreview) {
	t.Helper()
	a := b.get(t, booking.header.Get("Location")+"/cancellation")
	require.Equal(t, http.StatusOK, a.status, "%s", a.body)
	strict(t, a.body, &p)
	return p
}

// pay is what a worker has written once every open payment has succeeded.
func (b *bed) pay(t *testing.T) {
	t.Helper()
	for _, sql := range []string{
		`UPDATE payments SET status = 'succeeded', provider_intent_id = coalesce(provider_intent_id, 'pi_' || id), version = version + 1
		  WHERE status NOT IN ('succeeded', 'canceled', 'refused')`,
		`UPDATE bookings SET status = 'confirmed', ending_reason = NULL WHERE status IN ('held', 'ending')`,
	} {
		_, err := b.db.Pool.Exec(t.Context(), sql)
		require.NoError(t, err)
	}
}

// Cancelling as HTTP shows it. With no intent nothing was ever confirmed: the booking is over at once, and its slot free.
// With one it is ending until the fence has proved what became of it. What it does to the money is proved in payments.
func TestCancel(t *testing.T) {
	t.Parallel()
	b := setup(t)
	made := b.book(t, "one", b.body())
	first := b.cancel(t, made, "stop")
	require.Equal(t, http.StatusOK, first.status, "%s", first.body)
	var shown httpapi.Booking
	strict(t, first.body, &shown)
	require.Equal(t, domain.BookingCancelled, shown.Status)
	require.Equal(t, domain.EndCancel, shown.EndingReason)
	require.NotNil(t, shown.EndedAt)
	require.Equal(t, domain.Money{Currency: "EUR"}, shown.Cancellation.Refund, "it was never paid")
	require.JSONEq(t, string(b.get(t, made.header.Get("Location")).body), string(first.body))
	again := b.cancel(t, made, "stop")
	require.Equal(t, "true", again.header.Get("Idempotency-Replayed"))
	require.Equal(t, string(first.body), string(again.body))
	require.Equal(t, http.StatusOK, b.cancel(t, made, "another-key").status, "it is over, and stays so")

	sold := b.book(t, "two", b.body()) // the slot is sold again
	require.Equal(t, http.StatusCreated, sold.status, "%s", sold.body)
	b.decline(t) // and now there is an intent
	ending := b.cancel(t, sold, "stop")
	require.Equal(t, http.StatusAccepted, ending.status, "%s", ending.body)
	strict(t, ending.body, &shown)
	require.Equal(t, domain.BookingEnding, shown.Status)
	require.Equal(t, 1, b.count(t, `SELECT count(*) FROM outbox WHERE kind = 'cancel' AND status = 'pending'`))
	b.book(t, "three", b.body()).refused(t, http.StatusConflict, httpapi.CodeSlotUnavailable)

	require.Equal(t, payments.CancelUnchanged, b.preview(t, sold).Outcome)

	other := *b
	other.token = b.newToken(t, "rival", "bookings:write")
	other.cancel(t, sold, "theirs").refused(t, http.StatusNotFound, httpapi.CodeNotFound)
	for body, status := range map[string]int{``: 400, `[]`: 422, `{"reason":"x"}`: 422, `{"expected_refund":{"amount":-1,"currency":"EUR"}}`: 422, `{"expected_refund":null}`: 422} {
		require.Equal(t, status, b.send(t, http.MethodPost, sold.header.Get("Location")+"/cancel", strings.NewReader(body), b.bearer(),
			"Content-Type: application/json", "Idempotency-Key: bad").status, body)
	}
}

// A paid booking as HTTP shows it: what cancelling would do, first; then once, for the refund that was shown and no other; and
// the slot is free at once.
func TestCancelPaid(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, err := b.db.Pool.Exec(t.Context(), `UPDATE resources SET refund_policy = '[{"hours_before": 48, "percent": 50}]'`)
	require.NoError(t, err)
	made := b.book(t, "one", b.body())
	start := time.Date(2027, 5, 1, 8, 0, 0, 0, time.UTC)
	before := b.preview(t, made)
	b.pay(t)
	_, err = b.db.Pool.Exec(t.Context(), `UPDATE resources SET refund_policy = '[]'`) // nobody was shown that
	require.NoError(t, err)
	seen := b.preview(t, made)
	require.WithinDuration(t, time.Now(), time.Time(seen.AsOf), time.Minute)
	until := domain.Instant(start.Add(-48 * time.Hour))
	require.Equal(t, httpapi.CancellationPreview{
		BookingID: seen.BookingID, AsOf: seen.AsOf, Outcome: payments.CancelNow, Refund: domain.Money{Amount: 1250, Currency: "EUR"}, Percent: 50, Until: &until,
		Then: []httpapi.CancellationTerm{{Refund: domain.Money{Currency: "EUR"}}},
	}, seen)
	before.AsOf = seen.AsOf
	require.Equal(t, seen, before, "the same before it is paid")

	const wrong, right = `{"expected_refund":{"amount":2500,"currency":"EUR"}}`, `{"expected_refund":{"currency":"eur","amount":1250}}`
	refusal := b.cancel(t, made, "dear", wrong)
	require.Contains(t, refusal.refused(t, http.StatusConflict, httpapi.CodeRefundChanged).Detail, "1250 EUR")
	again := b.cancel(t, made, "dear", wrong)
	require.Equal(t, []string{"true", string(refusal.body)}, []string{again.header.Get("Idempotency-Replayed"), string(again.body)}, "it is a decision, too")
	b.cancel(t, made, "dear", right).refused(t, http.StatusUnprocessableEntity, httpapi.CodeKeyReused)
	require.Equal(t, domain.BookingConfirmed, b.status(t, made))

	done := b.cancel(t, made, "stop", right)
	require.Equal(t, http.StatusOK, done.status, "%s", done.body)
	var shown httpapi.Booking
	strict(t, done.body, &shown)
	require.Equal(t, []any{domain.BookingCancelled, domain.EndCancel, domain.PaymentSucceeded, int64(1250)},
		[]any{shown.Status, shown.EndingReason, shown.Payment.Status, shown.Cancellation.Refund.Amount})
	require.JSONEq(t, string(b.get(t, made.header.Get("Location")).body), string(done.body))
	require.Equal(t, string(done.body), string(b.cancel(t, made, "stop", right).body))
	require.Equal(t, http.StatusOK, b.cancel(t, made, "once-more", right).status, "it is what was expected, already")
	b.cancel(t, made, "yet-again", wrong).refused(t, http.StatusConflict, httpapi.CodeRefundChanged)
	after := b.preview(t, made)
	require.Equal(t, []any{payments.CancelUnchanged, int64(1250), 0}, []any{after.Outcome, after.Refund.Amount, len(after.Then)})
	require.Equal(t, http.StatusCreated, b.book(t, "two", b.body()).status, "the slot is sold again")

	past := b.book(t, "past", b.body(set("start", "2024-05-01T10:00:00Z"), set("end", "2024-05-01T11:00:00Z")))
	require.Equal(t, http.StatusCreated, past.status, "%s", past.body)
	require.Equal(t, payments.CancelNow, b.preview(t, past).Outcome, "what is not paid can always be given up")
	b.pay(t)
	require.Equal(t, payments.CancelTooLate, b.preview(t, past).Outcome)
	b.cancel(t, past, "late").refused(t, http.StatusConflict, httpapi.CodeBookingOver)

	other := *b
	other.token = b.newToken(t, "rival", "bookings:read")
	for _, path := range []string{made.header.Get("Location"), "/v1/bookings/x"} {
		other.get(t, path+"/cancellation").refused(t, http.StatusNotFound, httpapi.CodeNotFound)
	}
	other.token = b.newToken(t, "writer", "bookings:write")
	other.get(t, made.header.Get("Location")+"/cancellation").refused(t, http.StatusForbidden, httpapi.CodeForbidden)
}

func (b *bed) status(t *testing.T, booking answer) domain.BookingStatus {
	t.Helper()
	var shown httpapi.Booking
	strict(t, b.get(t, booking.header.Get("Location")).body, &shown)
	return shown.Status
}
