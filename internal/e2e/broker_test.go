package e2e_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// G6, incident 10: the broker is down from the start, for longer than any back-off and more tries than any job has.
// Expected: meanwhile every booking is confirmed and charged; no event is parked and none has used up an attempt. When
// the broker is back, every event comes out by itself, once, in order per booking.
func TestABrokerOutageLosesAndParksNothing(t *testing.T) {
	t.Parallel()
	const bookings, tries = 12, 30 // River would give a job 25
	b := newBed(t, nil, "PUBLISH_BACKOFF=20ms", "PUBLISH_MAX_BACKOFF=100ms")
	b.nats.Stop()
	api := b.start("api")
	b.start("worker")
	b.start("reconciler")
	court := b.resource(1, time.Hour)
	ada := b.customer("ada", api.address)
	var ids []string
	for hour := range bookings {
		ids = append(ids, ada.book(t, fmt.Sprint("key-", hour), wish{resource: court, hour: hour}))
	}

	eventually(t, soon, "all are confirmed without a broker", func() bool {
		return count(b, `SELECT count(*) FROM bookings WHERE status = 'confirmed'`) == bookings
	})
	b.requireCharges(ids)
	eventually(t, time.Minute, "every publish job was put off more often than the back-off grows", func() bool {
		return count(b, `SELECT count(*) FROM river_job WHERE kind = 'publish' AND (metadata->>'snoozes')::int >= $1`, tries) >= bookings
	})
	require.Equal(t, 2*bookings, count(b, `SELECT count(*) FROM outbox WHERE kind = 'publish' AND status = 'pending' AND attempts = 0`))

	b.nats.Restart()
	b.awaitStatus(soon, "confirmed", ids...)
	b.requireStory(confirmed(), ids...)
	require.Equal(t, 2*bookings, count(b, `SELECT count(*) FROM outbox WHERE kind = 'publish' AND status = 'done' AND attempts = 1`))
}
