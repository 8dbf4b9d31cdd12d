package e2e_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/payments/stripesim"
)

// G3, G5: SIGTERM in the middle of work. That nothing is left behind is asserted after every test, too (nothingLeft,
// stop, and goleak in TestMain).
// Expected: each binary exits 0 while requests hang at the provider; no process, connection, file or heartbeat of theirs
// is left; the next deployment finishes what was begun, under the same keys.
func TestNothingIsLeftBehind(t *testing.T) {
	t.Parallel()
	const bookings = 10
	b := newBed(t, nil)
	api, reconciler := b.start("api"), b.start("reconciler")
	court := b.resource(1, time.Hour)
	ada := b.customer("ada", api.address)
	b.sim.AddFault(stripesim.Fault{Operation: "payment_intents.confirm", Fault: "hang_after", Times: bookings})
	worker := b.start("worker")
	var ids []string
	for hour := range bookings {
		ids = append(ids, ada.book(t, fmt.Sprint("key-", hour), wish{resource: court, hour: hour}))
	}
	eventually(t, soon, "a confirm hangs", func() bool { return b.sent(":confirm:", true) > 0 })

	api.Stop()
	worker.Stop()
	reconciler.Stop()
	b.nothingLeft()
	require.Zero(t, count(b, `SELECT count(*) FROM outbox_workers`))
	require.Zero(t, count(b, `SELECT count(*) FROM river_job WHERE state = 'running'`), "no job is left in the hands of a dead process")

	b.sim.ClearFaults()
	b.start("worker")
	b.start("reconciler")
	b.awaitStatus(soon, "confirmed", ids...)
	b.requireStory(confirmed(), ids...)
	b.requireCharges(ids)
}
