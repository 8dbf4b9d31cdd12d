package outbox

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/internal/testnats"
)

// The stream is deleted while somebody merely listens to the subject, which turns "no stream" into silence. Expected: it is
// made again all the same.
func TestIncident15_WipedStoreHealsBesideAListener(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for name, answer := range map[string]string{"silent": "", "junk": "thanks!", "another stream": `{"stream":"OTHER","seq":7}`} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := testnats.New(t)
			js := b.stream(t, server, StreamConfig{RecreateAfter: 50 * time.Millisecond})
			require.NoError(t, js.js.DeleteStream(t.Context(), StreamName))
			conn := server.Connect(t)
			_, err := conn.Subscribe("bookings.v1.>", func(m *nats.Msg) {
				if answer != "" {
					_ = m.Respond([]byte(answer))
				}
			})
			require.NoError(t, err)
			require.NoError(t, conn.Flush())
			made := b.book(t)
			drain := NewDrain(b.pool, js, DrainConfig{Timeout: 100 * time.Millisecond}, b.logger)
			tries := 0
			require.Eventually(t, func() bool {
				tries++
				_, err := drain.Work(t.Context(), Job{Effect: made.held})
				require.NoError(t, err)
				_, err = js.js.Stream(t.Context(), StreamName)
				return err == nil
			}, patience, 10*time.Millisecond, "not made again; last_error %q", b.load(t, made.held).LastError)
		})
	}
}

// The run is cancelled (deploy, job time-out) while the third event waits for its acknowledgement. Expected: the two that
// the stream has acknowledged are recorded all the same.
func TestAcknowledgementsInHandAreRecorded(t *testing.T) {
	t.Parallel()
	b := setup(t)
	js := b.stream(t, testnats.New(t), StreamConfig{})
	made := b.book(t)
	b.event(t, made.booking, domain.EventPaymentDeclined)
	b.event(t, made.booking, domain.EventConfirmed)
	ctx, cancel := context.WithCancel(t.Context())
	n := 0
	drain := b.drain(publisherFunc(func(ctx context.Context, m Message) (Ack, error) {
		if n++; n == 3 {
			cancel()
			return Ack{}, ctx.Err()
		}
		return js.Publish(ctx, m)
	}))
	_, err := drain.Work(ctx, Job{Effect: made.held})
	require.Error(t, err)
	require.Equal(t, 2, b.count(t, `SELECT count(*) FROM outbox WHERE kind = 'publish' AND status = 'done'`))
}
