package outbox

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/internal/testnats"
)

// TestIncident16_AcknowledgementLostOnTheWire (G6): the stream stores the event, and its answer never arrives. While the
// stream remembers the id, a retry is told that it is a duplicate, which is a success; once it has forgotten, the event is
// stored again, under the same id and as the same bytes. Either way the row is done, and nothing is parked.
func TestIncident16_AcknowledgementLostOnTheWire(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for name, test := range map[string]struct {
		window time.Duration
		copies int
	}{
		"within the window": {window: time.Minute, copies: 1},
		"after the window":  {window: 2 * time.Second, copies: 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := testnats.NewListening(t)
			wire := testnats.NewWire(t, server)
			js := b.connected(t, wire.URL, StreamConfig{DuplicateWindow: test.window})
			broker, err := jetstream.New(server.Connect(t)) // hears what the worker does not
			require.NoError(t, err)
			made := b.book(t)

			wire.Mute()
			deaf := NewDrain(b.pool, js, DrainConfig{Timeout: 200 * time.Millisecond}, b.logger)
			unheard := func() {
				verdict, err := deaf.Work(t.Context(), Job{Effect: made.held})
				require.NoError(t, err)
				require.Positive(t, verdict.After)
				e := b.load(t, made.held)
				require.Equal(t, domain.EffectPending, e.Status)
				require.Equal(t, "no acknowledgement in time", e.LastError)
				require.Zero(t, e.Attempts)
			}
			unheard()
			stored(t, broker, 1)
			if test.copies == 1 {
				unheard()
			} else {
				forgotten(t, broker)
			}
			wire.Unmute()
			require.Eventually(t, func() bool { return js.conn.Stats().Reconnects > 0 && js.conn.IsConnected() },
				patience, 10*time.Millisecond)

			verdict, err := b.drain(js).Work(t.Context(), Job{Effect: made.held})
			require.NoError(t, err)
			require.Zero(t, verdict)
			e := b.load(t, made.held)
			require.Equal(t, domain.EffectDone, e.Status)
			require.Equal(t, test.copies == 1, e.Duplicate)
			require.Equal(t, 1, e.Attempts)
			var copies []*jetstream.RawStreamMsg
			for _, m := range told(t, js) {
				if m.Subject == "bookings.v1.held" {
					copies = append(copies, m)
				}
			}
			require.Len(t, copies, test.copies)
			for _, m := range copies {
				require.Equal(t, made.held.String(), m.Header.Get("Nats-Msg-Id"))
				require.Equal(t, string(copies[0].Data), string(m.Data))
			}
			require.EqualValues(t, copies[len(copies)-1].Sequence, e.StreamSequence)
		})
	}
}

// stored waits until the stream holds so many messages.
func stored(t *testing.T, js jetstream.JetStream, want uint64) {
	t.Helper()
	stream, err := js.Stream(t.Context(), StreamName)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		info, err := stream.Info(t.Context())
		return err == nil && info.State.Msgs == want
	}, patience, 5*time.Millisecond)
}

// forgotten waits until the stream has forgotten the ids of all that it holds by now. There is no asking it, and no clock
// of ours that is its own; but it forgets in the order of arrival, so whatever came before a probe is forgotten once the
// probe is taken a second time.
func forgotten(t *testing.T, js jetstream.JetStream) {
	t.Helper()
	probe := func() (duplicate bool) {
		ack, err := js.Publish(t.Context(), SubjectPrefix+"probe", nil, jetstream.WithMsgID("probe"))
		require.NoError(t, err)
		return ack.Duplicate
	}
	require.False(t, probe())
	for deadline := time.Now().Add(patience); probe(); {
		require.True(t, time.Now().Before(deadline), "the stream never forgets")
		<-time.After(20 * time.Millisecond) // between two looks
	}
}
