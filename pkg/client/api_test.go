package client_test

import (
	"errors"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/pkg/client"
)

// Every call against the real API, on a real database.
func TestEveryCall(t *testing.T) {
	t.Parallel()
	b := setup(t)
	server := httptest.NewServer(b.api)
	t.Cleanup(server.Close)
	c, err := client.New(client.Config{URL: server.URL, Token: b.token, Transport: server.Client().Transport})
	require.NoError(t, err)

	resources, err := c.ListResources(t.Context(), client.Page{Limit: 1})
	require.NoError(t, err)
	require.Len(t, resources.Resources, 1)
	require.Empty(t, resources.Next)
	resource, err := c.GetResource(t.Context(), b.resource)
	require.NoError(t, err)
	require.Equal(t, resources.Resources[0], resource)
	require.Equal(t, client.Resource{
		ID: b.resource, Name: "Hall", TimeZone: "UTC", Places: 4, UnitMinutes: 1, Price: client.Money{Amount: 100, Currency: "EUR"}, HoldSeconds: 900,
		RefundPolicy: []client.RefundStep{{HoursBefore: 0, Percent: 100}},
	}, resource)

	wish := b.wish(0)
	wish.Quantity, wish.ExpectedTotal = 2, &client.Money{Amount: 200, Currency: "EUR"}
	made, err := c.CreateBooking(t.Context(), "k-0", wish)
	require.NoError(t, err)
	require.False(t, made.Replayed)
	require.Equal(t, 1, made.Tries)
	require.Equal(t, client.Key("k-0"), made.Key)
	require.NotEmpty(t, made.RequestID)
	require.WithinDuration(t, time.Now().Add(24*time.Hour), made.KeyExpires, time.Minute)
	require.Equal(t, client.Held, made.Booking.Status)
	require.Equal(t, client.PaymentPending, made.Booking.Payment.Status)
	require.Equal(t, *wish.ExpectedTotal, made.Booking.Total)
	require.Equal(t, wish.Metadata, made.Booking.Metadata)
	require.True(t, wish.Start.Equal(made.Booking.Start) && wish.End.Equal(made.Booking.End))

	again, err := c.CreateBooking(t.Context(), "k-0", wish)
	require.NoError(t, err)
	require.True(t, again.Replayed)
	require.Equal(t, made.Booking, again.Booking)
	read, err := c.GetBooking(t.Context(), made.Booking.ID)
	require.NoError(t, err)
	require.Equal(t, made.Booking, read)

	_, err = c.ChangePayment(t.Context(), "", made.Booking.ID, "pm_card_mastercard")
	refused(t, err, 409, client.CodePaymentNotDeclined)
	other := b.wish(0)
	other.Quantity = 2
	given, err := c.CreateBooking(t.Context(), "", other)
	require.NoError(t, err)
	preview, err := c.PreviewCancellation(t.Context(), given.Booking.ID)
	require.NoError(t, err)
	require.Equal(t, []any{client.CancelNow, client.Money{Amount: 200, Currency: "EUR"}, 100}, []any{preview.Outcome, preview.Refund, preview.Percent})
	require.True(t, given.Booking.Start.Equal(*preview.Until))
	require.Equal(t, []client.CancellationTerm{{Refund: client.Money{Currency: "EUR"}}}, preview.Then)
	_, err = c.CancelBooking(t.Context(), "dear", given.Booking.ID, &client.Money{Amount: 201, Currency: "EUR"})
	refused(t, err, 409, client.CodeRefundChanged)
	cancelled, err := c.CancelBooking(t.Context(), "stop", given.Booking.ID, &preview.Refund)
	require.NoError(t, err)
	require.Equal(t, client.Cancelled, cancelled.Booking.Status)
	require.Equal(t, client.Money{Currency: "EUR"}, cancelled.Booking.Cancellation.Refund, "it was never paid")
	again, err = c.CancelBooking(t.Context(), "stop", given.Booking.ID, &preview.Refund)
	require.NoError(t, err)
	require.True(t, again.Replayed)

	wish.Quantity = 3 // two of four places are left
	_, err = c.CreateBooking(t.Context(), "k-0", wish)
	refused(t, err, 422, client.CodeKeyReused)
	wish.ExpectedTotal = nil
	_, err = c.CreateBooking(t.Context(), "k-1", wish)
	refused(t, err, 409, client.CodeSlotUnavailable)
	_, err = c.CreateBooking(t.Context(), "k-1", wish)
	require.True(t, refused(t, err, 409, client.CodeSlotUnavailable).Replayed)
	wish.End = wish.Start
	_, err = c.CreateBooking(t.Context(), "k-2", wish)
	require.Equal(t, "body.end", refused(t, err, 422, client.CodeValidationFailed).Faults[0].Location)
	_, err = c.GetBooking(t.Context(), b.resource)
	refused(t, err, 404, client.CodeNotFound)

	second, err := c.CreateBooking(t.Context(), "", b.wish(60))
	require.NoError(t, err)
	var listed []client.Booking
	for page := (client.Page{Limit: 1}); ; {
		found, err := c.ListBookings(t.Context(), client.BookingFilter{Page: page, Statuses: []client.BookingStatus{client.Held, client.Ending}, ResourceID: b.resource})
		require.NoError(t, err)
		listed = append(listed, found.Bookings...)
		if page.After = found.Next; page.After == "" {
			break
		}
	}
	require.ElementsMatch(t, []client.Booking{made.Booking, second.Booking}, listed)
	late, err := c.ListBookings(t.Context(), client.BookingFilter{
		From: second.Booking.Start.In(time.FixedZone("", 7200)), To: second.Booking.End,
	})
	require.NoError(t, err)
	require.Equal(t, []client.Booking{second.Booking}, late.Bookings)

	stranger, err := client.New(client.Config{URL: server.URL, Token: "hf_nobody", Transport: server.Client().Transport})
	require.NoError(t, err)
	_, err = stranger.GetBooking(t.Context(), made.Booking.ID)
	refused(t, err, 401, client.CodeUnauthenticated)
}

func refused(t *testing.T, err error, status int, code client.Code) client.Problem {
	t.Helper()
	p, ok := errors.AsType[*client.Problem](err)
	require.True(t, ok, "%v", err)
	require.Equal(t, code, p.Code)
	require.Equal(t, status, p.Status)
	require.NotEmpty(t, p.RequestID)
	return *p
}
