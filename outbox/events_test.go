package outbox

import (
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/domain"
)

// Whoever follows a booking is told its events and no other effects, published or not, in order.
func TestEventsOfABooking(t *testing.T) {
	t.Parallel()
	b := setup(t)
	one, other := b.book(t), b.book(t)
	b.event(t, one.booking, domain.EventPaymentDeclined)
	b.event(t, one.booking, domain.EventConfirmed)
	events := NewEvents(b.pool)
	all := []Happened{{1, domain.EventHeld}, {2, domain.EventPaymentDeclined}, {3, domain.EventConfirmed}}
	for after := range int64(4) {
		got, err := events.After(t.Context(), one.booking, after)
		require.NoError(t, err)
		require.Equal(t, all[after:], append([]Happened{}, got...))
	}
	nobody := domain.NewID[domain.BookingID]()
	newest, err := events.Newest(t.Context(), []domain.BookingID{other.booking, one.booking, nobody, one.booking})
	require.NoError(t, err)
	require.Equal(t, map[domain.BookingID]int64{one.booking: 3, other.booking: 1}, newest)
	newest, err = events.Newest(t.Context(), nil)
	require.NoError(t, err)
	require.Empty(t, newest)
	b.exec(t, `DROP TABLE outbox CASCADE`)
	_, err = events.After(t.Context(), one.booking, 0)
	require.Error(t, err)
	_, err = events.Newest(t.Context(), []domain.BookingID{one.booking})
	require.Error(t, err)
}
