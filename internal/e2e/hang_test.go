package e2e_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/payments/stripesim"
)

// G3, G6, incident 02: the provider charges and then hangs beyond our time-out, so that the worker sends again, and then
// again; SIGKILL of the worker; two workers under other host names carry on.
// Expected: every send of a booking's confirm, whoever made it, has one key and one set of parameters; one charge; the
// booking is confirmed and told once.
func TestIncident02_AChargeThatHangsOutlivesItsWorker(t *testing.T) {
	t.Parallel()
	const bookings = 6
	b := newBed(t, nil, "STRIPE_TIMEOUT=1s", "MAX_SENDS=1000", "WORKER_DEAD_AFTER=3s")
	api := b.start("api")
	court := b.resource(1, time.Hour)
	ada := b.customer("ada", api.address)
	hang := b.sim.AddFault(stripesim.Fault{Operation: "payment_intents.confirm", Fault: "hang_after", Times: -1})
	var ids, confirms []string
	for hour := range bookings {
		id := ada.book(t, fmt.Sprint("key-", hour), wish{resource: court, hour: hour})
		ids = append(ids, id)
		confirms = append(confirms, value[string](b, `SELECT id::text FROM payments WHERE booking_id = $1`, id)+":confirm:")
	}

	first := b.startOn("first", "worker")
	eventually(t, soon, "each booking is charged, and its confirm was sent again after the time-out", func() bool {
		for _, key := range confirms {
			if b.sent(key, true) == 0 || b.sent(key, false) < 2 {
				return false
			}
		}
		return true
	})
	require.Zero(t, count(b, `SELECT count(*) FROM bookings WHERE status <> 'held'`), "nobody knows yet")
	require.NoError(t, first.Kill())
	b.startOn("second", "worker")
	b.startOn("third", "worker")
	if hostsCanBeNamed() {
		require.Equal(t, 3, count(b, `SELECT count(DISTINCT split_part(id, '_', 1)) FROM outbox_workers`), "three hosts")
	}
	before := len(b.sim.Journal(0))
	b.start("reconciler")
	eventually(t, carriedOnWithin, "the others have sent, too, and hang as well", func() bool {
		return b.sentSince(before, ":confirm:") > 0
	})
	require.True(t, b.sim.RemoveFault(hang))
	b.awaitStatus(carriedOnWithin, "confirmed", ids...)
	b.requireStory(confirmed(), ids...)
	b.requireCharges(ids)
	for _, id := range ids {
		require.Len(t, b.confirmKeys(id), 1, "all sends of booking %s under one key", id)
	}
}

// sentSince counts the requests under a key that the journal has taken up after its first entries. Reads have none: the
// reconciler may read the provider's books at any time.
func (b *bed) sentSince(entries int, key string) int {
	b.Helper()
	n := 0
	for _, entry := range b.sim.Journal(int64(entries)) {
		if entry.IdempotencyKey != "" && strings.Contains(entry.IdempotencyKey, key) {
			n++
		}
	}
	return n
}

// confirmKeys are the keys under which the provider was asked to take a booking's money, by the intent that it is for.
func (b *bed) confirmKeys(id string) map[string]bool {
	b.Helper()
	intent := value[string](b, `SELECT provider_intent_id FROM payments WHERE booking_id = $1`, id)
	keys := map[string]bool{}
	for _, entry := range b.sim.Journal(0) {
		if entry.Operation == "payment_intents.confirm" && entry.Object == intent {
			keys[entry.IdempotencyKey] = true
		}
	}
	return keys
}
