package e2e_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/payments/stripesim"
)

// G3, G6, incident 02: two complete deployments on one database, on two hosts, while the provider's answers are lost or
// hang beyond the time-out, and the same requests come to both of them.
// Expected: 40 bookings, 40 charges, `held` and `confirmed` of each once and in order, every key executed once.
func TestIncident02_TwoDeploymentsChargeOnce(t *testing.T) {
	t.Parallel()
	const bookings = 40
	b := newBed(t, nil, "STRIPE_TIMEOUT=1s")
	b.sim.AddFault(stripesim.Fault{Operation: "payment_intents.confirm", Fault: "hang_after", Times: bookings / 4})
	b.sim.AddFault(stripesim.Fault{Operation: "payment_intents.create", Fault: "reset_after", Times: bookings / 2})
	b.sim.AddFault(stripesim.Fault{Operation: "payment_intents.confirm", Fault: "reset_after", Times: bookings / 2})
	// On a kept connection net/http sends the request again by itself: one more twin.
	b.sim.AddFault(stripesim.Fault{Operation: "payment_intents.confirm", Fault: "reset_after_reused", Times: bookings / 2})
	b.sim.AddFault(stripesim.Fault{Operation: "payment_intents.retrieve", Fault: "reset_before", Times: bookings / 4})
	var apis []*service
	for _, host := range []string{"east", "west"} {
		apis = append(apis, b.startOn(host, "api"))
		b.startOn(host, "worker")
		b.startOn(host, "reconciler")
	}
	court := b.resource(1, time.Hour)
	ada := b.customer("ada", apis[0].address)
	doors := []customer{ada, {url: "http://" + apis[1].address, token: ada.token, http: ada.http}}

	answers := together(2*bookings, func(i int) (answer, error) {
		return doors[i%2].insist(t.Context(), fmt.Sprint("key-", i/2), wish{resource: court, hour: i / 2}, time.Minute)
	})
	var ids []string
	for i, a := range answers {
		require.NoError(t, a.err)
		require.Equal(t, answers[i/2*2].body, a.body, "both deployments give one answer")
		if i%2 == 0 {
			ids = append(ids, a.booking(t).ID)
		}
	}
	b.awaitStatus(time.Minute, "confirmed", ids...)
	b.requireStory(confirmed(), ids...)
	b.requireCharges(ids)
	require.Equal(t, bookings, count(b, `SELECT count(*) FROM bookings`))
}
