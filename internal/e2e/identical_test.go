package e2e_test

import (
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// G1: the first experiment of idempotent APIs, and the second.
// Expected: of 50 simultaneous identical requests each gets 201 and the same bytes, exactly one of them not as a replay;
// one booking, one charge. The same key with other parameters gets 422 and learns nothing of the first request.
func TestFiftyIdenticalRequestsAreOneBooking(t *testing.T) {
	t.Parallel()
	b := newBed(t, nil)
	api := b.start("api")
	b.start("worker")
	court := b.resource(3, time.Hour)
	ada := b.customer("ada", api.address)

	answers := together(50, func(int) (answer, error) { return ada.try(t.Context(), "same", wish{resource: court}) })
	originals := 0
	for _, a := range answers {
		require.NoError(t, a.err)
		require.Equal(t, http.StatusCreated, a.status, a.body)
		require.Equal(t, answers[0].body, a.body)
		if a.replayed == "" {
			originals++
		} else {
			require.Equal(t, "true", a.replayed)
		}
	}
	require.Equal(t, 1, originals)
	id := answers[0].booking(t).ID

	for name, other := range map[string]wish{
		"another slot": {resource: court, hour: 7}, "a longer one": {resource: court, hours: 2},
		"another card": {resource: court, method: "pm_card_mastercard"},
	} {
		refused := ada.post(t, "same", other)
		require.Equal(t, http.StatusUnprocessableEntity, refused.status, name)
		require.Equal(t, "idempotency_key_reused", refused.code(), name)
		for _, secret := range []string{id, court, "2031-01-06", "pm_card", "2500", "Ada", "held"} {
			require.NotContains(t, refused.body, secret, name)
		}
	}

	b.awaitStatus(soon, "confirmed", id)
	b.requireStory(confirmed(), id)
	require.Equal(t, 1, count(b, `SELECT count(*) FROM bookings`))
	require.Len(t, b.sim.Ledger().Charges, 1)
}

// attempt is an answer, or that there was none.
type attempt struct {
	answer

	err error
}

// together calls f n times at the same moment and returns what each call got.
func together(n int, f func(i int) (answer, error)) []attempt {
	attempts := make([]attempt, n)
	start := make(chan struct{})
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() {
			<-start
			attempts[i].answer, attempts[i].err = f(i)
		})
	}
	close(start)
	group.Wait()
	return attempts
}
