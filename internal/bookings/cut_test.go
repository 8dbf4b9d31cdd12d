package bookings_test

import (
	"encoding/binary"
	"io"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/internal/bookings"
)

// Incident 01 (G1): the claim's reply is lost, after its commit or before it arrived. The claim is run again on a fresh
// connection inside the same request. Expected in both: the one booking, told as such.
func TestIncident01_LostReply(t *testing.T) {
	t.Parallel()
	for name, where := range map[string]int32{"after the commit": cutReply, "before it arrived": cutRequest} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			r := request(b.resource(1), 0)
			proxy := newCutter(b)
			service := bookings.New(b.open(proxy.url), b, bookings.Config{})
			_, err := service.Accept(b.ctx, b.client, "warm", request(r.ResourceID, 10)) // the statement is prepared now
			require.NoError(t, err)
			proxy.cut.Store(where)
			first, err := service.Accept(b.ctx, b.client, "key", r)
			require.NoError(t, err)
			require.Equal(t, 201, first.Status)
			require.Equal(t, where == cutReply, first.Replayed, "the second try finds what the first has committed")
			require.Equal(t, int32(1), proxy.cuts.Load())
			require.Equal(t, each(2, 0), b.rows())
			again, err := service.Accept(b.ctx, b.client, "key", r)
			require.NoError(t, err)
			require.Equal(t, string(first.Body), string(again.Body))
		})
	}
}

const (
	cutNothing int32 = iota
	cutReply         // the next bound statement reaches the server, its reply is dropped
	cutRequest       // the next bound statement is dropped
)

// cutter is a proxy that knows PostgreSQL's message frames well enough to cut at the execution of a statement.
type cutter struct {
	url    string
	target string
	cut    atomic.Int32
	cuts   atomic.Int32
}

func newCutter(b *bed) *cutter {
	b.Helper()
	u, err := url.Parse(b.db.URL)
	require.NoError(b, err)
	listener, err := (&net.ListenConfig{}).Listen(b.ctx, "tcp", "127.0.0.1:0")
	require.NoError(b, err)
	c := &cutter{target: u.Host}
	u.Host = listener.Addr().String()
	c.url = u.String()
	var group sync.WaitGroup
	group.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			group.Go(func() { c.serve(client) })
		}
	})
	b.Cleanup(func() {
		_ = listener.Close()
		group.Wait()
	})
	return c
}

func (c *cutter) serve(client net.Conn) {
	defer func() { _ = client.Close() }()
	server, err := net.Dial("tcp", c.target)
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	var mute atomic.Bool // replies are dropped from now on
	var group sync.WaitGroup
	group.Go(func() {
		defer func() { _ = client.Close() }()
		buffer := make([]byte, 1<<16)
		for {
			n, err := server.Read(buffer)
			if err != nil || mute.Load() {
				return
			}
			if _, err := client.Write(buffer[:n]); err != nil {
				return
			}
		}
	})
	c.forward(client, server, &mute)
	_ = server.Close()
	group.Wait()
}

// forward copies the client's messages, frame by frame.
func (c *cutter) forward(client io.Reader, server io.Writer, mute *atomic.Bool) {
	for startup := true; ; startup = false {
		header := make([]byte, 5)
		if startup {
			header = header[:4]
		}
		if _, err := io.ReadFull(client, header); err != nil {
			return
		}
		body := make([]byte, binary.BigEndian.Uint32(header[len(header)-4:])-4)
		if _, err := io.ReadFull(client, body); err != nil {
			return
		}
		if !startup && header[0] == 'B' {
			switch c.cut.Swap(cutNothing) {
			case cutRequest:
				c.cuts.Add(1)
				return
			case cutReply:
				c.cuts.Add(1)
				mute.Store(true)
			}
		}
		if _, err := server.Write(append(header, body...)); err != nil {
			return
		}
	}
}
