package outbox

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/internal/testnats"
)

// TestIncident15_StreamDeletedMidPublish (G6, G7): somebody deletes the stream in the midst of it. What was not
// acknowledged waits, the stream is made again by who needs it, and the rest goes out; what the old stream had
// acknowledged is brought back by republishing, once.
func TestIncident15_StreamDeletedMidPublish(t *testing.T) {
	t.Parallel()
	const bookings, events = 60, 3
	b := setup(t)
	server := testnats.NewListening(t)
	js := b.connected(t, server.URL(), StreamConfig{RecreateAfter: 200 * time.Millisecond})
	b.books(t, bookings, domain.EventPaymentDeclined, domain.EventConfirmed)
	var failed atomic.Int64
	publisher, reached := disturbed(js, &failed, bookings)
	b.workers(t, WorkersConfig{}, map[domain.EffectKind]Handler{domain.EffectPublish: b.impatient(publisher).Work})
	wait(t, reached)
	require.NoError(t, js.js.DeleteStream(t.Context(), StreamName))
	b.eventually(t, bookings*events, `SELECT count(*) FROM outbox WHERE kind = 'publish' AND status = 'done' AND attempts = 1`)
	require.Positive(t, failed.Load(), "nothing was under way")

	kept := map[string]bool{}
	for _, m := range told(t, js) {
		kept[m.Header.Get("Nats-Msg-Id")] = true
	}
	lost := bookings*events - len(kept)
	require.Positive(t, lost, "what was acknowledged before went with the stream")

	span := Span{From: time.Now().Add(-time.Hour), To: time.Now().Add(time.Hour)}
	done, err := Republish(t.Context(), b.pool, js, span, "ada", "the stream was deleted")
	require.NoError(t, err)
	require.Equal(t, Republished{Published: bookings * events, Stored: lost}, done)
	for id, copies := range requireToldWhereTheRowsSay(t, b, js) {
		require.Equal(t, 1, copies, "event %s", id)
	}
}
