package testdb

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/url"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// Message is a message of a client to PostgreSQL: its type byte (Q simple query, P parse, B bind, E execute) and body.
type Message struct {
	Type byte
	Body []byte
}

// IsCommit tells whether the message is the COMMIT of a transaction.
func (m Message) IsCommit() bool {
	return m.Type == 'Q' && bytes.EqualFold(bytes.Trim(m.Body, "\x00; "), []byte("commit"))
}

// Cut is what happens to a message.
type Cut int

// The cuts. A cut message ends its connection.
const (
	Pass      Cut = iota
	LoseReply     // it reaches the server, which acts on it; its reply is dropped
	LoseIt        // it is dropped
)

// Cutter is a proxy that understands PostgreSQL's message frames, and cuts connections at chosen messages.
type Cutter struct {
	URL string // of the database, by way of the proxy

	target string
	mu     sync.Mutex
	judge  func(Message) Cut
}

// NewCutter puts a proxy before the database. Everything passes until Judge says otherwise.
func NewCutter(tb testing.TB, db *DB) *Cutter {
	tb.Helper()
	u, err := url.Parse(db.URL)
	require.NoError(tb, err)
	listener, err := (&net.ListenConfig{}).Listen(tb.Context(), "tcp", "127.0.0.1:0")
	require.NoError(tb, err)
	c := &Cutter{target: u.Host}
	u.Host = listener.Addr().String()
	c.URL = u.String()
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
	tb.Cleanup(func() {
		_ = listener.Close()
		group.Wait()
	})
	return c
}

// Judge sets who decides about each message from now on; it is called for one message at a time. Nil: everything passes.
func (c *Cutter) Judge(judge func(Message) Cut) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.judge = judge
}

func (c *Cutter) ask(m Message) Cut {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.judge == nil {
		return Pass
	}
	return c.judge(m)
}

func (c *Cutter) serve(client net.Conn) {
	defer func() { _ = client.Close() }()
	server, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", c.target)
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	var muted sync.Mutex // held while a reply is written; once taken for good, no reply passes any more
	var group sync.WaitGroup
	group.Go(func() {
		defer func() { _ = client.Close() }()
		buffer := make([]byte, 1<<16)
		for {
			n, err := server.Read(buffer)
			if err != nil || !muted.TryLock() {
				return
			}
			_, err = client.Write(buffer[:n])
			muted.Unlock()
			if err != nil {
				return
			}
		}
	})
	c.forward(client, server, &muted)
	_ = server.Close()
	group.Wait()
}

// forward copies the client's messages, frame by frame, until one is cut.
func (c *Cutter) forward(client io.Reader, server io.Writer, muted *sync.Mutex) {
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
		cut := Pass
		if !startup {
			cut = c.ask(Message{Type: header[0], Body: body})
		}
		switch cut {
		case LoseIt:
			return
		case LoseReply:
			muted.Lock() // until the connection ends
		case Pass:
		}
		if _, err := server.Write(append(header, body...)); err != nil {
			return
		}
	}
}
