package simulate

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"sync"

	"github.com/jackc/pgx/v5"
)

// cut is what happens to the next statement on a connection.
type cut int

const (
	noCut     cut = iota
	cutBefore     // the server never gets it
	cutAfter      // the server carries it out, and its reply is lost
)

func (c cut) String() string { return [...]string{"passed", "lost", "carried out, its reply lost"}[c] }

// wire is a connection to the database that can be cut at a chosen statement. When a cut is over, so is everything that the
// server did for the connection: no lock of it is left, and what it committed is committed, before anybody goes on.
type wire struct {
	net.Conn

	mu   sync.Mutex
	next cut
	dead bool
}

// dialWire is the pools' way to the server.
func dialWire(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &wire{Conn: conn}, nil
}

// arm decides what happens to the next statement.
func (w *wire) arm(c cut) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.next = c
}

func (w *wire) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.dead:
		return 0, net.ErrClosed
	case w.next == noCut || !executes(b):
		return w.Conn.Write(b)
	case w.next == cutBefore:
		w.end()
		return 0, io.ErrClosedPipe
	default:
		n, err := w.Conn.Write(b)
		if err == nil {
			err = w.awaitReady()
		}
		w.end()
		return n, err
	}
}

func (w *wire) Read(b []byte) (int, error) {
	w.mu.Lock()
	dead := w.dead
	w.mu.Unlock()
	if dead {
		return 0, net.ErrClosed
	}
	return w.Conn.Read(b)
}

// end says good-bye and waits until the server has let go: it aborts what is open before it closes its side.
func (w *wire) end() {
	w.dead = true
	_, _ = w.Conn.Write([]byte{'X', 0, 0, 0, 4})
	_, _ = io.Copy(io.Discard, w.Conn)
	_ = w.Conn.Close()
}

// awaitReady reads what the server answers, to its end.
func (w *wire) awaitReady() error {
	header := make([]byte, 5)
	for {
		if _, err := io.ReadFull(w.Conn, header); err != nil {
			return err
		}
		if _, err := io.CopyN(io.Discard, w.Conn, int64(binary.BigEndian.Uint32(header[1:]))-4); err != nil {
			return err
		}
		if header[0] == 'Z' {
			return nil
		}
	}
}

// executes tells whether there is a statement among the messages, and not only its preparation.
func executes(b []byte) bool {
	for len(b) >= 5 {
		if b[0] == 'Q' || b[0] == 'E' {
			return true
		}
		length := int(binary.BigEndian.Uint32(b[1:5])) + 1
		if length > len(b) {
			return false
		}
		b = b[length:]
	}
	return false
}

// tracer tells the schedule of every statement before it is sent.
type tracer struct {
	before func(conn *pgx.Conn, sql string)
}

var (
	_ pgx.QueryTracer = (*tracer)(nil)
	_ pgx.BatchTracer = (*tracer)(nil)
)

func (t *tracer) TraceQueryStart(ctx context.Context, conn *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	t.before(conn, data.SQL)
	return ctx
}

func (t *tracer) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (t *tracer) TraceBatchStart(ctx context.Context, conn *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	t.before(conn, "")
	return ctx
}

func (t *tracer) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

func (t *tracer) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}
