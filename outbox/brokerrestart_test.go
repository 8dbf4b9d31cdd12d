package outbox

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/internal/testnats"
)

// TestIncident15_BrokerRestartsMidPublish (G6): twice, in the midst of three hundred events. A row that was done on
// anything but the stream's word has no message where it says; one that was given up is parked or has used up attempts;
// one that was overtaken while it waited comes out of order.
func TestIncident15_BrokerRestartsMidPublish(t *testing.T) {
	t.Parallel()
	const bookings, events = 100, 3
	b := setup(t)
	server := testnats.NewListening(t)
	js := b.connected(t, server.URL(), StreamConfig{})
	b.books(t, bookings, domain.EventPaymentDeclined, domain.EventConfirmed)
	var failed atomic.Int64
	publisher, reached := disturbed(js, &failed, bookings/2, bookings*2)
	b.workers(t, WorkersConfig{}, map[domain.EffectKind]Handler{domain.EffectPublish: b.impatient(publisher).Work})
	for range 2 {
		wait(t, reached)
		before := failed.Load()
		server.Restart()
		require.Eventually(t, func() bool { return failed.Load() > before }, patience, time.Millisecond, "nothing was under way")
	}
	b.eventually(t, bookings*events, `SELECT count(*) FROM outbox WHERE kind = 'publish' AND status = 'done' AND attempts = 1`)
	require.Len(t, requireToldWhereTheRowsSay(t, b, js), bookings*events)
	requireInOrder(t, told(t, js), bookings)
	require.Zero(t, b.count(t, `SELECT count(*) FROM river_job WHERE errors IS NOT NULL`), "an outage is no failure of a job")
}
