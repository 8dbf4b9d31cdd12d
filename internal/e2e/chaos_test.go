package e2e_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// G1 … G6: each binary is killed at random, twenty times in all, during 200 bookings, and started again at once.
// Expected: 200 bookings, 200 charges, 200 distinct `confirmed` ids in the stream, nothing stuck.
func TestTwentyKillsDuringTwoHundredBookings(t *testing.T) {
	t.Parallel()
	const bookings, kills, senders = 200, 20, 8
	b := newBed(t, nil)
	api, worker, reconciler := b.start("api"), b.start("worker"), b.start("reconciler")
	court := b.resource(1, time.Hour)
	ada := b.customer("ada", api.address)

	work := make(chan int, bookings)
	answers := make([]attempt, bookings)
	var group sync.WaitGroup
	for range senders {
		group.Go(func() {
			for n := range work {
				a := &answers[n]
				a.answer, a.err = ada.insist(t.Context(), fmt.Sprint("key-", n), wish{resource: court, hour: n}, time.Minute)
			}
		})
	}
	victims := []*service{api, worker, reconciler}
	for kill := range kills {
		for i := range bookings / kills {
			work <- kill*(bookings/kills) + i
		}
		<-time.After(rand.N(120 * time.Millisecond)) // random on purpose: anywhere in the path of these bookings
		victim := victims[kill%len(victims)]
		require.NoError(t, victim.Kill())
		victim.Start()
	}
	close(work)
	group.Wait()

	var ids []string
	for _, a := range answers {
		require.NoError(t, a.err)
		ids = append(ids, a.booking(t).ID)
	}
	b.awaitStatus(time.Minute, "confirmed", ids...)
	b.requireStory(confirmed(), ids...)
	b.requireCharges(ids)
	require.Equal(t, bookings, count(b, `SELECT count(*) FROM bookings`))
	distinct := map[string]bool{}
	for _, m := range b.stream() {
		if m.subject == "bookings.v1.confirmed" {
			distinct[m.msgID] = true
		}
	}
	require.Len(t, distinct, bookings)
	stdout, stderr, code := b.command("worker", "outbox", "list", "--stuck")
	require.Zero(t, code, "nothing is stuck: %s%s", stdout, stderr)
}
