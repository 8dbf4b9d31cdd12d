package httpapi_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/internal/httpapi"
)

func (b *bed) cancel(t *testing.T, booking answer, key string) answer {
	t.Helper()
	return b.send(t, http.MethodPost, booking.header.Get("Location")+"/cancel", strings.NewReader(`{}`), b.bearer(),
		"Content-Type: application/json", "Idempotency-Key: "+key)
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

	_, err := b.db.Pool.Exec(t.Context(), `UPDATE bookings SET status = 'confirmed', ending_reason = NULL WHERE status = 'ending'`)
	require.NoError(t, err)
	b.cancel(t, sold, "too-late").refused(t, http.StatusConflict, httpapi.CodeBookingConfirmed)

	other := *b
	other.token = b.newToken(t, "rival", "bookings:write")
	other.cancel(t, sold, "theirs").refused(t, http.StatusNotFound, httpapi.CodeNotFound)
	for body, status := range map[string]int{``: 400, `[]`: 422, `{"reason":"x"}`: 422} {
		require.Equal(t, status, b.send(t, http.MethodPost, sold.header.Get("Location")+"/cancel", strings.NewReader(body), b.bearer(),
			"Content-Type: application/json", "Idempotency-Key: bad").status, body)
	}
}
