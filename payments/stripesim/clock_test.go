package stripesim_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The clock can stand: what is born meanwhile is born in that second, however long it takes.
func TestTheClockStands(t *testing.T) {
	t.Parallel()
	b := setup(t)
	at := b.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, 2).Add(-time.Millisecond)
	require.Equal(t, http.StatusOK, b.control(t, http.MethodPost, "/_sim/clock", map[string]any{"stand_at": at}, nil))
	id := b.create(t, "")
	require.True(t, b.Now().Equal(at))
	require.EqualValues(t, at.Unix(), b.get(t, "/v1/payment_intents/"+id).body["created"])
	require.True(t, b.Advance(time.Millisecond).Equal(at.Add(time.Millisecond)), "it is moved, and stands there")
	require.Equal(t, at.Unix()+1, b.Now().Unix())
	require.Error(t, b.StandAt(at))
	b.Reset()
	require.WithinDuration(t, time.Now(), b.Now(), time.Minute)
}
