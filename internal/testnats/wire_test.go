package testnats_test

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"holdfast/internal/testnats"
)

// TestMutedWireLosesOnlyAnswers: what is sent over it is stored, as the other connection sees; nothing comes back until
// it is unmuted, and then the client is connected again by itself.
func TestMutedWireLosesOnlyAnswers(t *testing.T) {
	t.Parallel()
	server := testnats.NewListening(t)
	wire := testnats.NewWire(t, server)
	back := make(chan struct{})
	conn, err := nats.Connect(wire.URL, nats.MaxReconnects(-1), nats.ReconnectWait(10*time.Millisecond),
		nats.ReconnectHandler(func(*nats.Conn) { close(back) }))
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	js, seen := stream(t, conn), stream(t, server.Connect(t))

	wire.Mute()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err = js.Publish(ctx, "things.one", []byte("1"), jetstream.WithMsgID("a"))
	require.ErrorIs(t, err, context.DeadlineExceeded)
	things, err := seen.Stream(t.Context(), "THINGS")
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		info, err := things.Info(t.Context())
		return err == nil && info.State.Msgs == 1
	}, time.Minute, 5*time.Millisecond)

	wire.Unmute()
	<-back
	ack, err := js.Publish(t.Context(), "things.one", []byte("1"), jetstream.WithMsgID("a"))
	require.NoError(t, err)
	require.True(t, ack.Duplicate)
}
