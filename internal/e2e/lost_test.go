package e2e_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// G1: the third experiment. The connection is severed when the API has answered, so after its COMMIT.
// Expected: the client has no answer; the same request sent again gets 201 as a replay; one booking, one charge.
func TestAResponseThatWasCutIsReplayed(t *testing.T) {
	t.Parallel()
	b := newBed(t, nil)
	api := b.start("api")
	b.start("worker")
	court := b.resource(2, time.Hour)
	var cut atomic.Bool
	cut.Store(true)
	between := newProxy(t, api.address, func([]byte) bool { return cut.Swap(false) })
	ada := b.customer("ada", between.address)

	_, err := ada.try(t.Context(), "one", wish{resource: court})
	require.Error(t, err)
	require.Equal(t, 1, between.cuts())
	require.Equal(t, 1, count(b, `SELECT count(*) FROM bookings`), "it was committed all the same")

	second, third := ada.post(t, "one", wish{resource: court}), ada.post(t, "one", wish{resource: court})
	require.Equal(t, http.StatusCreated, second.status, second.body)
	require.Equal(t, "true", second.replayed)
	require.Equal(t, second, third)
	b.awaitStatus(soon, "confirmed", second.booking(t).ID)
	b.requireStory(confirmed(), second.booking(t).ID)
	require.Len(t, b.sim.Ledger().Charges, 1)
}

// G1, incident 01: the database has committed, and its reply never reaches the API.
// Expected, when the API dies of it: no answer; started again, it replays 201. When only the connection dies: the API
// asks the database anew and answers 201 at once. Either way one booking, one charge, and the same bytes ever after.
func TestIncident01_LostCommitReply(t *testing.T) {
	t.Parallel()
	for name, killed := range map[string]bool{"and the API killed": true, "and the API alive": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, nil)
			court := b.resource(2, time.Hour)
			var api *service
			var lost atomic.Int32 // replies that told of the booking; the first is lost
			between := newProxy(t, hostOf(t, b.db.URL), func(reply []byte) bool {
				if !bytes.Contains(reply, []byte("hold_expires_at")) || lost.Add(1) > 1 {
					return false
				}
				return !killed || api.Kill() == nil
			})
			api = b.start("api", "DATABASE_URL="+through(t, b.db.URL, between.address))
			ada := b.customer("ada", api.address)

			first, err := ada.try(t.Context(), "one", wish{resource: court})
			require.Positive(t, lost.Load())
			require.Equal(t, 1, count(b, `SELECT count(*) FROM bookings`))
			if killed {
				require.Error(t, err)
				api.Start()
				api.AwaitReady()
				first = ada.post(t, "one", wish{resource: court})
			} else {
				require.NoError(t, err)
			}
			require.Equal(t, http.StatusCreated, first.status, first.body)
			require.Equal(t, "true", first.replayed, "it was made by a try whose reply was lost")
			require.Equal(t, first, ada.post(t, "one", wish{resource: court}))

			b.start("worker")
			b.awaitStatus(soon, "confirmed", first.booking(t).ID)
			b.requireStory(confirmed(), first.booking(t).ID)
			require.Equal(t, 1, count(b, `SELECT count(*) FROM bookings`))
			require.Len(t, b.sim.Ledger().Charges, 1)
		})
	}
}

// G1, incident 09: SIGKILL of the API at random over 120 keyed requests, each sent until it is answered.
// Expected: each key ends in 201 and exactly one booking; sent again, it gets the same bytes; none stays 409.
func TestIncident09_KilledAPILeavesNoKeyInProgress(t *testing.T) {
	t.Parallel()
	const kills, perKill, senders = 10, 12, 6
	b := newBed(t, nil)
	api := b.start("api")
	court := b.resource(1, time.Hour)
	ada := b.customer("ada", api.address)

	keys := make(chan int, kills*perKill)
	answers := make([]attempt, kills*perKill)
	var group sync.WaitGroup
	for range senders {
		group.Go(func() {
			for n := range keys {
				a := &answers[n]
				a.answer, a.err = ada.insist(t.Context(), fmt.Sprint("key-", n), wish{resource: court, hour: n}, time.Minute)
			}
		})
	}
	for n := range kills {
		for i := range perKill {
			keys <- n*perKill + i
		}
		// The moment is random on purpose: somewhere in what these requests go through.
		<-time.After(rand.N(60 * time.Millisecond))
		require.NoError(t, api.Kill())
		api.Start()
	}
	close(keys)
	group.Wait()

	api.AwaitReady()
	for n, a := range answers {
		require.NoError(t, a.err)
		require.Equal(t, http.StatusCreated, a.status, a.body)
		again := ada.post(t, fmt.Sprint("key-", n), wish{resource: court, hour: n})
		require.Equal(t, http.StatusCreated, again.status, again.body)
		require.Equal(t, "true", again.replayed)
		require.Equal(t, a.body, again.body)
	}
	require.Equal(t, len(answers), count(b, `SELECT count(*) FROM bookings`))
	require.Equal(t, len(answers), count(b, `SELECT count(DISTINCT booking_id) FROM idempotency_keys`))
	require.Equal(t, len(answers), count(b, `SELECT count(*) FROM outbox WHERE kind = 'charge'`))
}
