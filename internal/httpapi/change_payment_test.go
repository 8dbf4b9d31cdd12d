package httpapi_test

import (
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/internal/bookings"
	"holdfast/internal/httpapi"
	"holdfast/payments"
)

// decline is what a worker has written once every open payment's card was declined.
func (b *bed) decline(t *testing.T) {
	t.Helper()
	_, err := b.db.Pool.Exec(t.Context(), `
		UPDATE payments SET status = 'declined', decline_code = 'insufficient_funds', failure_code = 'card_declined',
		       provider_intent_id = coalesce(provider_intent_id, 'pi_' || id), version = version + 1
		 WHERE status = 'pending'`)
	require.NoError(t, err)
}

// change sends another card for the booking that was answered.
func (b *bed) change(t *testing.T, booking answer, key, body string) answer {
	t.Helper()
	return b.send(t, http.MethodPost, booking.header.Get("Location")+"/payment", strings.NewReader(body), b.bearer(),
		"Content-Type: application/json", "Idempotency-Key: "+key)
}

// Another card as HTTP shows it: taken once for its key, replayed byte for byte, refused for good where none is called for.
// What it does to the money is proved in payments.
func TestAnotherCard(t *testing.T) {
	t.Parallel()
	b := setup(t)
	made := b.book(t, "one", b.body())
	require.Equal(t, http.StatusCreated, made.status)
	const card = `{"payment_method":"pm_card_mastercard"}`

	early := b.change(t, made, "early", card)
	early.refused(t, http.StatusConflict, httpapi.CodePaymentNotDeclined)
	b.decline(t)
	again := b.change(t, made, "early", card)
	again.refused(t, http.StatusConflict, httpapi.CodePaymentNotDeclined)
	require.Equal(t, "true", again.header.Get("Idempotency-Replayed"), "a refusal is a decision, too")
	require.Equal(t, string(early.body), string(again.body))

	taken := b.change(t, made, "card", card)
	require.Equal(t, http.StatusAccepted, taken.status, "%s", taken.body)
	var shown httpapi.Booking
	strict(t, taken.body, &shown)
	require.Equal(t, domain.PaymentPending, shown.Payment.Status)
	require.Empty(t, shown.Payment.DeclineCode)
	require.JSONEq(t, string(b.get(t, made.header.Get("Location")).body), string(taken.body))
	replay := b.change(t, made, `"card"`, " { \"payment_method\" : \"pm_card_mastercard\" } ")
	require.Equal(t, "true", replay.header.Get("Idempotency-Replayed"))
	require.Equal(t, string(taken.body), string(replay.body))
	b.change(t, made, "card", `{"payment_method":"pm_card_visa"}`).refused(t, http.StatusUnprocessableEntity, httpapi.CodeKeyReused)
	require.Equal(t, 2, b.count(t, `SELECT count(*) FROM outbox WHERE kind = 'charge'`), "one for each card")
	require.Equal(t, 1, b.count(t, `SELECT count(*) FROM payments WHERE card = 2 AND payment_method = 'pm_card_mastercard'`))

	b.decline(t)
	_, err := b.db.Pool.Exec(t.Context(), `UPDATE bookings SET hold_expires_at = clock_timestamp()`)
	require.NoError(t, err)
	late := b.change(t, made, "late", card).refused(t, http.StatusConflict, httpapi.CodePaymentNotDeclined)
	require.Contains(t, late.Detail, "hold ended at", "held and declined it is")

	_, err = b.db.Pool.Exec(t.Context(), `UPDATE idempotency_keys SET response_expires_at = clock_timestamp()`)
	require.NoError(t, err)
	expired := b.change(t, made, "card", card)
	expired.refused(t, http.StatusConflict, httpapi.CodeKeyExpired)
	require.Equal(t, made.header.Get("Location"), expired.header.Get("Location"))
}

func TestBadCardsAreRefusedAndNothingIsWritten(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *httpapi.Config) {
		service, ok := c.Bookings.(*bookings.Service)
		require.True(t, ok)
		c.Desk = payments.NewDesk(service, noWaker{}, payments.CardLimits{PerBooking: 1}, slog.New(slog.DiscardHandler))
	})
	made := b.book(t, "one", b.body())
	b.decline(t)
	rows := b.rows(t)
	for body, status := range map[string]int{
		``: 400, `{`: 400, `[]`: 422, `{}`: 422, `{"payment_method":""}`: 422, `{"payment_method":7}`: 422, `{"payment_method":null}`: 422,
		`{"payment_method":"pm_card_visa","x":1}`: 422, `{"payment_method":"4242424242424242"}`: 422, `{"payment_method":"pm card"}`: 422,
		`{"payment_method":"` + strings.Repeat("x", 256) + `"}`: 422,
	} {
		require.Equal(t, status, b.change(t, made, "key", body).status, body)
	}
	b.change(t, made, "key", `{"payment_method":"pm_card_visa"}`).refused(t, http.StatusTooManyRequests, httpapi.CodeTooManyCards)
	for _, id := range []string{uuid.NewString(), "x", "%00"} {
		nobody := answer{header: http.Header{"Location": {"/v1/bookings/" + id}}}
		b.change(t, nobody, "key", `{"payment_method":"pm_card_visa"}`).refused(t, http.StatusNotFound, httpapi.CodeNotFound)
	}
	b.send(t, http.MethodPost, made.header.Get("Location")+"/payment", strings.NewReader(`{}`), b.bearer(), "Content-Type: application/json").
		refused(t, http.StatusBadRequest, httpapi.CodeKeyMissing)
	require.Equal(t, rows, b.rows(t))
}
