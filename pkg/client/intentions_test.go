package client_test

import (
	"context"
	"errors"
	"flag"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/pkg/client"
)

// More, by hand: go test -run TestOneBookingPerIntention ./pkg/client -args -intentions 10000.
var (
	intentions = flag.Int("intentions", 300, "how many bookings TestOneBookingPerIntention makes")
	seed       = flag.Uint64("seed", 1, "of what is done to them")
)

// G1: many intentions through a network that drops, delays, repeats and cuts, before and after the API has carried the
// request out. One in four callers has no patience, gives up with an unknown outcome, and goes on later under the same
// key. Expected: one booking per intention, whose caller knows it; never two, never none.
func TestOneBookingPerIntention(t *testing.T) {
	t.Parallel()
	const callers = 32
	b := setup(t)
	network, server := newHostile(t, b.api, *seed, 0.6)
	transport := &http.Transport{MaxIdleConnsPerHost: callers}
	t.Cleanup(transport.CloseIdleConnections)
	c, err := client.New(client.Config{
		URL: server.URL, Token: b.token, Transport: transport, Timeout: 5 * time.Minute, TryTimeout: 3 * time.Second,
		MinBackoff: time.Millisecond, MaxBackoff: 50 * time.Millisecond,
	})
	require.NoError(t, err)

	made, unknown, replayed := make([]client.Created, *intentions), make([]int, callers), make([]int, callers)
	began := time.Now()
	var all sync.WaitGroup
	for caller := range callers {
		all.Go(func() {
			for i := caller; i < *intentions; i += callers {
				created, gaveUp, err := insist(t.Context(), c, b.wish(i), i%4 == 0)
				if err != nil {
					t.Errorf("intention %d: %v", i, err)
					return
				}
				made[i] = created
				unknown[caller] += gaveUp
				if created.Replayed {
					replayed[caller]++
				}
			}
		})
	}
	all.Wait()
	require.False(t, t.Failed())

	bookings := b.count(t, `SELECT count(*) FROM bookings`)
	keys := b.count(t, `SELECT count(*) FROM idempotency_keys`)
	t.Logf("%d intentions in %s: %d bookings, %d keys; %d unknown outcomes, %d replays; injected %s", *intentions,
		time.Since(began).Round(time.Millisecond), bookings, keys, sum(unknown), sum(replayed), network)
	require.Equal(t, *intentions, bookings)
	require.Equal(t, *intentions, keys)
	require.Equal(t, *intentions, b.count(t, `SELECT count(DISTINCT metadata->>'intention') FROM bookings`))
	require.Equal(t, *intentions, b.count(t, `SELECT count(*) FROM payments`))
	require.Equal(t, *intentions, b.count(t, `SELECT count(*) FROM allocations WHERE active`))
	known := map[string]bool{}
	for i, m := range made {
		known[m.Booking.ID] = true
		require.Equal(t, strconv.Itoa(i), m.Booking.Metadata["intention"], "the caller was told of another's booking")
	}
	require.Len(t, known, *intentions)
	require.Positive(t, sum(unknown))
	require.Positive(t, sum(replayed))
	for name := range faults {
		require.Contains(t, network.injected, name, "never happened")
	}
}

// insist books as a program should that may have little time: it keeps the key of an unknown outcome and goes on.
func insist(ctx context.Context, c *client.Client, wish client.BookingRequest, impatient bool) (made client.Created, unknown int, err error) {
	var key client.Key
	for tries := 0; ; tries++ {
		patience := 5 * time.Minute
		if impatient && tries < 3 {
			patience = 20 * time.Millisecond
		}
		try, cancel := context.WithTimeout(ctx, patience)
		made, err = c.CreateBooking(try, key, wish)
		cancel()
		doubt, ok := errors.AsType[*client.UnknownError](err)
		switch {
		case err == nil || patience > time.Second || !errors.Is(err, context.DeadlineExceeded):
			return made, unknown, err
		case ok:
			unknown++
			key = doubt.Key
		}
	}
}

func sum(of []int) (total int) {
	for _, n := range of {
		total += n
	}
	return total
}
