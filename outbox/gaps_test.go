package outbox

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/testnats"
)

// Incident 15: a stream that has lost what it had acknowledged. Expected: each lost event is listed, by its sequence, and no other.
func TestIncident15_GapsOfTheStreamAreListed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.book(t)
	server := testnats.New(t)
	js := b.stream(t, server, StreamConfig{})
	require.NoError(t, js.EnsureStream(t.Context()))
	from, to := time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	gaps, err := js.Gaps(t.Context(), b.pool, from, to)
	require.NoError(t, err)
	require.Empty(t, gaps)
	for sequence, why := range map[int]string{1: "another event", 7: "lost"} {
		_, err = js.conn.Request(SubjectPrefix+"held", []byte("{}"), 5*time.Second)
		require.NoError(t, err)
		_, err = b.pool.Exec(t.Context(), `
			UPDATE outbox SET status = 'done', finished_at = now(), stream = $1, stream_sequence = $2
			 WHERE id = (SELECT id FROM outbox WHERE kind = 'publish' LIMIT 1)`, StreamName, sequence)
		require.NoError(t, err)
		gaps, err = js.Gaps(t.Context(), b.pool, from, to)
		require.NoError(t, err)
		require.Len(t, gaps, 1)
		require.Contains(t, gaps[0].Why, why)
	}
	gaps, err = js.Gaps(t.Context(), b.pool, from.Add(-time.Hour), from)
	require.NoError(t, err)
	require.Empty(t, gaps, "another time")
	server.Stop()
	_, err = js.Gaps(t.Context(), b.pool, from, to)
	require.Error(t, err, "nobody knows")
	server.Restart()
}
