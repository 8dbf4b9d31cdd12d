package outbox

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/testnats"
)

// Incident 15: the broker lost what it had acknowledged (G6, G7). Expected: republishing the span brings each event back
// once, in order, as the same bytes under the same id, and leaves one audit row; doing it again adds nothing to a stream
// that still has them.
func TestIncident15_RepublishAfterTheStoreWasWiped(t *testing.T) {
	t.Parallel()
	b := setup(t)
	server := testnats.New(t)
	js := b.stream(t, server, StreamConfig{})
	ctx := patient(t)
	drain := b.drain(js)
	for range 3 {
		_, err := drain.Work(ctx, Job{Effect: b.book(t).held})
		require.NoError(t, err)
	}
	before := told(t, js)
	require.Len(t, before, 3)
	require.NoError(t, js.js.DeleteStream(ctx, StreamName))
	require.NoError(t, js.EnsureStream(ctx))
	require.Empty(t, told(t, js))

	span := Span{From: time.Now().Add(-time.Hour), To: time.Now().Add(time.Hour)}
	_, err := Republish(ctx, b.pool, js, span, "ops@example.org", " ")
	var refused *RefusedError
	require.ErrorAs(t, err, &refused)
	done, err := Republish(ctx, b.pool, js, span, "ops@example.org", "the store was wiped")
	require.NoError(t, err)
	require.Equal(t, Republished{Published: 3, Stored: 3}, done)
	after := told(t, js)
	require.Len(t, after, 3)
	for i := range after {
		require.Equal(t, before[i].Header.Get("Nats-Msg-Id"), after[i].Header.Get("Nats-Msg-Id"))
		require.Equal(t, string(before[i].Data), string(after[i].Data))
	}
	again, err := Republish(ctx, b.pool, js, span, "ops@example.org", "once more")
	require.NoError(t, err)
	require.Equal(t, Republished{Published: 3, Stored: 0}, again)
	require.Len(t, told(t, js), 3)
	var audits int
	require.NoError(t, b.pool.QueryRow(t.Context(), `SELECT count(*) FROM operator_actions WHERE action = 'republish'`).Scan(&audits))
	require.Equal(t, 2, audits)
}
