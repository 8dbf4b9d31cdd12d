package e2e_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// soon is for what takes a second, on a machine that is busy with other tests.
const soon = 30 * time.Second

// G1, G3, G6: the whole path, from the request to the stream.
// Expected: 201 held; then confirmed; one charge of 2500 EUR; `held` and `confirmed` in the stream, once each, in this
// order, under the ids of their rows.
func TestABookingIsConfirmedChargedAndTold(t *testing.T) {
	t.Parallel()
	b := newBed(t, nil)
	api := b.start("api")
	b.start("worker")
	b.start("reconciler")
	court := b.resource(1, time.Hour)
	ada := b.customer("ada", api.address)

	a := ada.post(t, "one", wish{resource: court})
	require.Equal(t, http.StatusCreated, a.status, a.body)
	require.Empty(t, a.replayed)
	require.Equal(t, "held", a.booking(t).Status)
	id := a.booking(t).ID
	eventually(t, soon, "the customer reads confirmed", func() bool {
		read := ada.get(t, id)
		require.Equal(t, http.StatusOK, read.status, read.body)
		return read.booking(t).Status == "confirmed" && read.booking(t).Payment.Status == "succeeded"
	})
	b.awaitStatus(soon, "confirmed", id)
	b.requireStory(confirmed(), id)
	require.Len(t, b.stream(), 2)

	// Another client cannot tell this booking from one that never was (G9).
	foreign := b.customer("eve", api.address).get(t, id)
	require.Equal(t, http.StatusNotFound, foreign.status)
	require.NotContains(t, foreign.body, "ada")
}

// G1: two keys are two intentions, even with equal parameters.
// Expected: on a resource with two places, two bookings and two charges; a third key finds no place, and no charge.
func TestTwoKeysAreTwoIntentions(t *testing.T) {
	t.Parallel()
	b := newBed(t, nil)
	api := b.start("api")
	b.start("worker")
	court := b.resource(2, time.Hour)
	ada := b.customer("ada", api.address)

	same := wish{resource: court}
	first, second := ada.book(t, "one", same), ada.book(t, "two", same)
	require.NotEqual(t, first, second)
	third := ada.post(t, "three", same)
	require.Equal(t, http.StatusConflict, third.status)
	require.Equal(t, "slot_unavailable", third.code())
	b.awaitStatus(soon, "confirmed", first, second)
	b.requireStory(confirmed(), first, second)
	require.Len(t, b.sim.Ledger().Charges, 2)
	require.Equal(t, 2, count(b, `SELECT count(*) FROM bookings`))
}
