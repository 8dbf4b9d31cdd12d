package testnats_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"holdfast/internal/testnats"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestPublishIsAcknowledged(t *testing.T) {
	t.Parallel()
	js := stream(t, testnats.New(t).Connect(t))
	ack, err := js.Publish(t.Context(), "things.one", []byte("1"), jetstream.WithMsgID("a"))
	require.NoError(t, err)
	require.False(t, ack.Duplicate)
	ack, err = js.Publish(t.Context(), "things.one", []byte("1"), jetstream.WithMsgID("a"))
	require.NoError(t, err)
	require.True(t, ack.Duplicate)
}

func TestRestartKeepsTheStoreAndItsClients(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(testing.TB) *testnats.Server{
		"in process": testnats.New, "listening": testnats.NewListening,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := start(t)
			down, up := make(chan struct{}), make(chan struct{})
			var first sync.Once // closing the connection is told as a disconnection too
			conn := server.Connect(t,
				nats.DisconnectErrHandler(func(*nats.Conn, error) { first.Do(func() { close(down) }) }),
				nats.ReconnectHandler(func(*nats.Conn) { close(up) }))
			js := stream(t, conn)
			_, err := js.Publish(t.Context(), "things.one", []byte("1"))
			require.NoError(t, err)

			server.Stop()
			<-down
			_, err = server.Conn(nats.MaxReconnects(0))
			require.ErrorContains(t, err, "stopped")

			server.Restart()
			<-up
			ack, err := js.Publish(t.Context(), "things.one", []byte("2"))
			require.NoError(t, err)
			require.EqualValues(t, 2, ack.Sequence)
		})
	}
}

func TestListeningServerIsReachedByItsURL(t *testing.T) {
	t.Parallel()
	server := testnats.NewListening(t)
	before := server.URL()
	conn, err := nats.Connect(before)
	require.NoError(t, err)
	conn.Close()
	server.Restart()
	require.Equal(t, before, server.URL())
}

func stream(t *testing.T, conn *nats.Conn) jetstream.JetStream {
	t.Helper()
	js, err := jetstream.New(conn)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err = js.CreateStream(ctx, jetstream.StreamConfig{Name: "THINGS", Subjects: []string{"things.>"}})
	require.NoError(t, err)
	return js
}
