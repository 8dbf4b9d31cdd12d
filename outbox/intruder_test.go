package outbox

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/internal/testnats"
)

// TestIncident15_AnIntruderBesideTheStream (G6): the stream is there, and somebody else hears the same subject and answers
// before it. An event is done on the stream's word alone: one whose acknowledgement was beaten waits, is published again
// under its id, which the stream drops, and is done once the intruder is gone.
func TestIncident15_AnIntruderBesideTheStream(t *testing.T) {
	t.Parallel()
	const beaten = 3
	b := setup(t)
	for name, answer := range map[string]string{
		"junk":                              "thanks!",
		"no acknowledgement of any stream":  `{}`,
		"another stream's acknowledgement":  `{"stream":"OTHER","seq":7}`,
		"an acknowledgement of no sequence": `{"stream":"BOOKINGS","seq":0}`,
		"an error":                          `{"error":{"code":503,"err_code":10077,"description":"full"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := testnats.New(t)
			js := b.stream(t, server, StreamConfig{})
			drain := b.drain(js)
			conn := server.Connect(t)
			intruder, err := conn.Subscribe("bookings.v1.held", func(m *nats.Msg) { _ = m.Respond([]byte(answer)) })
			require.NoError(t, err)
			require.NoError(t, conn.Flush())

			stream, err := js.js.Stream(t.Context(), StreamName)
			require.NoError(t, err)
			done := func(id domain.EffectID) Effect { // and the stream has it where the row says
				e := b.load(t, id)
				require.Equal(t, domain.EffectDone, e.Status)
				m, err := stream.GetMsg(t.Context(), uint64(e.StreamSequence))
				require.NoError(t, err)
				require.Equal(t, id.String(), m.Header.Get("Nats-Msg-Id"))
				return e
			}

			var told []domain.EffectID
			beat := map[domain.EffectID]bool{}
			for deadline := time.Now().Add(patience); len(beat) < beaten; {
				require.True(t, time.Now().Before(deadline), "the stream was always faster")
				made := b.book(t)
				told = append(told, made.held)
				for range 2 { // the second time it is a duplicate, and no better
					occupy(t, conn)
					verdict, err := drain.Work(t.Context(), Job{Effect: made.held})
					require.NoError(t, err)
					if verdict.After == 0 {
						done(made.held)
						break
					}
					e := b.load(t, made.held)
					require.Equal(t, domain.EffectPending, e.Status)
					require.Zero(t, e.Attempts)
					require.NotEmpty(t, e.LastError)
					beat[made.held] = true
				}
			}
			require.NoError(t, intruder.Unsubscribe())
			require.NoError(t, conn.Flush())

			for _, id := range told {
				verdict, err := drain.Work(t.Context(), Job{Effect: id})
				require.NoError(t, err)
				require.Zero(t, verdict)
				require.True(t, done(id).Duplicate || !beat[id], "the stream had it already")
			}
			info, err := stream.Info(t.Context(), jetstream.WithSubjectFilter("bookings.v1.held"))
			require.NoError(t, err)
			require.EqualValues(t, len(told), info.State.Subjects["bookings.v1.held"], "each is in the stream once")
		})
	}
}

// occupy gives the stream so much to store that whoever else answers the next event is faster. The server has all of it
// when occupy returns.
func occupy(t *testing.T, conn *nats.Conn) {
	t.Helper()
	for range 2000 {
		require.NoError(t, conn.Publish("bookings.v1.other", nil))
	}
	require.NoError(t, conn.Flush())
}
