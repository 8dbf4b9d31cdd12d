package e2e_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/payments/stripesim"
)

// G4, G5, incident 03: the provider refuses every confirm with a 503 until the hold ends.
// Expected: expired, its intent canceled and no charge; the slot sells again, and the next customer is charged once.
func TestAnUnpaidHoldIsFencedAndReleased(t *testing.T) {
	t.Parallel()
	b := newBed(t, nil)
	api := b.start("api")
	b.start("worker")
	b.start("reconciler")
	court := b.resource(1, 2*time.Second)
	ada := b.customer("ada", api.address)
	fault := b.sim.AddFault(stripesim.Fault{Operation: "payment_intents.confirm", Fault: "error_503", Times: -1})

	first := ada.book(t, "first", wish{resource: court})
	b.awaitStatus(soon, "expired", first)
	require.Empty(t, b.sim.Ledger().Charges)
	b.requireStory(expired(), first)
	require.Equal(t, http.StatusOK, ada.get(t, first).status)
	require.Equal(t, "expired", ada.get(t, first).booking(t).Status)

	require.True(t, b.sim.RemoveFault(fault))
	second := ada.book(t, "second", wish{resource: court})
	b.awaitStatus(soon, "confirmed", second)
	b.requireStory(confirmed(), second)
	b.requireStory(expired(), first)
	b.requireCharges([]string{second})
}

// G4, incidents 03 and 08: the confirm took the money, but neither it nor any read is ever answered before the hold
// ends.
// Expected: in doubt, the slot stays taken after the end of the hold; the fence finds the money, and the booking is
// confirmed. One charge.
func TestASuccessFoundByTheFenceConfirms(t *testing.T) {
	t.Parallel()
	b := newBed(t, nil)
	api := b.start("api")
	b.start("worker")
	b.start("reconciler")
	court := b.resource(1, 2*time.Second)
	ada := b.customer("ada", api.address)
	b.sim.AddFault(stripesim.Fault{Operation: "payment_intents.confirm", Fault: "error_503_after", Times: -1})
	reads := b.sim.AddFault(stripesim.Fault{Operation: "payment_intents.retrieve", Fault: "error_503", Times: -1})
	lists := b.sim.AddFault(stripesim.Fault{Operation: "*.list", Fault: "error_503", Times: -1})
	cancels := b.sim.AddFault(stripesim.Fault{Operation: "payment_intents.cancel", Fault: "error_503", Times: -1})

	id := ada.book(t, "first", wish{resource: court})
	eventually(t, soon, "the hold has ended and the fence is under way", func() bool {
		return value[string](b, `SELECT status FROM bookings WHERE id = $1`, id) == "ending" && b.sent(":cancel:", false) > 0
	})
	rival := ada.post(t, "rival", wish{resource: court})
	require.Equal(t, http.StatusConflict, rival.status, "G4: nothing proves that the slot is free")
	require.Equal(t, "slot_unavailable", rival.code())

	require.True(t, b.sim.RemoveFault(cancels))
	b.awaitStatus(carriedOnWithin, "confirmed", id)
	require.True(t, b.sim.RemoveFault(reads) && b.sim.RemoveFault(lists))
	found := confirmed()
	found.calls = expired().calls
	b.requireStory(found, id)
	b.requireCharges([]string{id})
}
