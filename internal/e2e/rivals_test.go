package e2e_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// G2, G3, incident 05: 50 rivals with keys of their own for one slot. Their ranges are equal, enclosing or overlapping,
// and all contain one hour; two more only touch it.
// Expected: on one place one rival wins, on three places three; the others get 409 slot_unavailable; who only touches
// wins as well. No 5xx, no deadlock (nothingLeft looks); charges for the winners and for nobody else.
func TestRivalsForOneSlot(t *testing.T) {
	t.Parallel()
	for _, places := range []int{1, 3} {
		t.Run(fmt.Sprint(places, " places"), func(t *testing.T) {
			t.Parallel()
			const rivals = 50
			b := newBed(t, nil)
			api := b.start("api")
			b.start("worker")
			court := b.resource(places, time.Hour)
			ada := b.customer("ada", api.address)
			ranges := []wish{{hour: 10, hours: 1}, {hour: 10, hours: 2}, {hour: 9, hours: 2}, {hour: 9, hours: 3}}
			neighbours := []wish{{hour: 8, hours: 1}, {hour: 12, hours: 1}}

			answers := together(rivals+len(neighbours), func(i int) (answer, error) {
				w := append(neighbours, ranges[i%len(ranges)])[min(i, len(neighbours))]
				w.resource = court
				return ada.try(t.Context(), fmt.Sprint("key-", i), w)
			})
			var won []string
			for i, a := range answers {
				require.NoError(t, a.err)
				if a.status == http.StatusCreated {
					won = append(won, a.booking(t).ID)
					continue
				}
				require.Equal(t, http.StatusConflict, a.status, a.body)
				require.Equal(t, "slot_unavailable", a.code())
				require.GreaterOrEqual(t, i, len(neighbours), "a neighbour only touches the slot")
			}
			require.Len(t, won, places+len(neighbours))

			b.awaitStatus(soon, "confirmed", won...)
			b.requireCharges(won)
			require.Equal(t, len(won), count(b, `SELECT count(*) FROM bookings`))
		})
	}
}

// requireCharges asserts that the provider has charged these bookings once each, and nobody else.
func (b *bed) requireCharges(ids []string) {
	b.Helper()
	ledger := b.sim.Ledger()
	require.NoError(b, ledger.Check())
	var charged []string
	for _, c := range ledger.Succeeded("") {
		charged = append(charged, c.Metadata["booking_id"])
	}
	require.ElementsMatch(b, ids, charged)
}

// G1, G2: a refusal is an answer, too, and is kept like a booking.
// Expected: the winner's card is declined, so its hold ends and the slot is free again; the loser's key, sent again,
// still gets its 409, byte for byte; a new key gets the slot, and the only charge.
func TestALosersReplayStaysARefusal(t *testing.T) {
	t.Parallel()
	b := newBed(t, nil)
	api := b.start("api")
	b.start("worker")
	b.start("reconciler")
	court := b.resource(1, 2*time.Second)
	ada := b.customer("ada", api.address)

	winner := ada.book(t, "winner", wish{resource: court, method: "pm_card_chargeDeclined"})
	loser := ada.post(t, "loser", wish{resource: court})
	require.Equal(t, http.StatusConflict, loser.status)
	require.Equal(t, "slot_unavailable", loser.code())
	b.awaitStatus(soon, "expired", winner)

	again := ada.post(t, "loser", wish{resource: court})
	require.Equal(t, answer{status: loser.status, replayed: "true", body: loser.body}, again)
	third := ada.book(t, "third", wish{resource: court})
	b.awaitStatus(soon, "confirmed", third)

	declined := expired()
	declined.events = []string{"held", "payment_declined", "expired"}
	b.requireStory(declined, winner)
	b.requireStory(confirmed(), third)
	b.requireCharges([]string{third})
	require.Equal(t, 2, count(b, `SELECT count(*) FROM bookings`))
}
