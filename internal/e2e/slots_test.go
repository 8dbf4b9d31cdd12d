package e2e_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/payments/stripesim"
)

// G3, G5, G6, incident 14: the provider hangs on every slot that the worker has for charges.
// Expected: meanwhile an ended hold is fenced, its slot released and that told: the other kinds have slots of their own.
// Each hanging send ends with its time-out, and its slot goes to the next charge although the provider still hangs. When
// it answers again, late to those that have long gone, every booking is charged, confirmed and told once.
func TestIncident14_AHungProviderHoldsUpNoOtherKind(t *testing.T) {
	t.Parallel()
	const slots, bookings = 2, 6
	gate := newGate()
	b := newBed(t, gate.observe, "MAX_WORKERS=2", "STRIPE_TIMEOUT=8s", "JOB_TIMEOUT=20s", "RESCUE_AFTER=25s")
	api := b.start("api")
	court := b.resource(1, time.Hour)
	ada := b.customer("ada", api.address)
	b.start("worker")
	declined := ada.book(t, "declined", wish{resource: court, method: "pm_card_chargeDeclined"})
	b.awaitStatus(soon, "held", declined)

	gate.hold(":confirm:")
	var ids []string
	for hour := range bookings {
		ids = append(ids, ada.book(t, fmt.Sprint("key-", hour), wish{resource: court, hour: hour + 1}))
	}
	eventually(t, soon, "the provider hangs on all slots, and the other charges wait", func() bool {
		return len(b.unanswered()) == slots &&
			count(b, `SELECT count(*) FROM river_job WHERE kind = 'charge' AND state = 'available'`) == bookings-slots
	})
	hanging := b.unanswered()
	b.endHolds("declined")
	_, stderr, code := b.command("reconciler", "once")
	require.Less(t, code, 2, stderr)
	b.awaitStatus(soon, "expired", declined)
	require.Equal(t, hanging, b.unanswered(), "all that time no slot for charges was free")

	eventually(t, soon, "the slots came back, and went to other charges", func() bool {
		keys := map[string]bool{}
		for _, entry := range b.sim.Journal(0) {
			if entry.Operation == "payment_intents.confirm" && !entry.Executed {
				keys[entry.IdempotencyKey] = true
			}
		}
		return len(keys) > slots
	})
	require.Empty(t, b.sim.Ledger().Succeeded(""), "the provider has answered nobody so far")
	gate.open()
	b.start("reconciler")
	b.awaitStatus(carriedOnWithin, "confirmed", ids...)
	b.requireStory(confirmed(), ids...)
	b.requireCharges(ids)
	fenced := expired()
	fenced.events = []string{"held", "payment_declined", "expired"}
	b.requireStory(fenced, declined)
}

// unanswered are the confirms that the provider is still working on, in the order of their arrival.
func (b *bed) unanswered() []stripesim.JournalEntry {
	var open []stripesim.JournalEntry
	for _, entry := range b.sim.Journal(0) {
		if entry.Open && strings.Contains(entry.IdempotencyKey, ":confirm:") {
			open = append(open, entry)
		}
	}
	return open
}
