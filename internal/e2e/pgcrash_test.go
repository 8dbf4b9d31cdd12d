package e2e_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"holdfast/internal/pgserver"
	"holdfast/internal/testdb"
)

// G1, G3, G5, G6, incidents 01 and 04: PostgreSQL crashes (the immediate shutdown: every connection is cut, nothing is
// brought to an end) in the middle of a run, with confirms on their way to the provider, and is started again a while
// later. API, worker and reconciler live on throughout. The provider takes money while there is nothing to write it to.
// Expected: every request is answered, with 201 or with 503 and when to come again. Each key ends in one booking, and
// sent again gets the same bytes. What was acknowledged before the crash has survived it; every booking is confirmed,
// charged and told once. Nobody starts a process again.
func TestIncident04_ACrashOfPostgreSQLLosesNothing(t *testing.T) {
	t.Parallel()
	const part = 16 // bookings before the crash, as many in the middle of which it comes, and as many while the server is away
	gate := newGate()
	var pg *private
	b := newBedOn(t, func() *testdb.DB { pg = newPrivate(t); return pg.db }, gate.observe,
		"STRIPE_TIMEOUT=5s", "JOB_TIMEOUT=12s", "RESCUE_AFTER=15s")
	_, stderr, code := b.command("api", "migrate")
	require.Zero(t, code, stderr)
	binaries := []*service{b.start("api"), b.start("worker"), b.start("reconciler")}
	court := b.resource(1, time.Hour)
	ada := b.customer("ada", binaries[0].address)
	gate.hold(":confirm:")
	crowd := newCrowd(t, ada, court)

	crowd.send(part)
	crowd.await(part)
	eventually(t, soon, "confirms are on their way", func() bool { return len(b.unanswered()) >= part })
	crowd.send(part)
	crowd.await(part / 4)
	pg.crash()
	crowd.send(part)
	eventually(t, soon, "everybody has noticed", func() bool {
		for _, s := range binaries {
			if s.ready() != http.StatusServiceUnavailable {
				return false
			}
		}
		return crowd.refusals() >= part
	})
	gate.open()
	eventually(t, soon, "the provider takes money meanwhile", func() bool { return len(b.sim.Ledger().Succeeded("")) > 0 })

	pg.start()
	crowd.wait()
	require.Empty(t, crowd.wrong, "answers that nobody should get")
	require.Len(t, crowd.made, 3*part)
	var ids []string
	for n, first := range crowd.made {
		again := ada.post(t, fmt.Sprint("key-", n), wish{resource: court, hour: n})
		require.Equal(t, "true", again.replayed)
		require.Equal(t, first.body, again.body)
		ids = append(ids, first.booking(t).ID)
	}
	b.awaitStatus(time.Minute, "confirmed", ids...)
	b.requireStory(confirmed(), ids...)
	b.requireCharges(ids)
	require.Equal(t, 3*part, count(b, `SELECT count(*) FROM bookings`))
	for _, s := range binaries {
		require.True(t, s.running() && s.runs == 1, "%s lives on", s.name)
		s.AwaitReady()
	}
}

// crowd are customers who each send one request until it is accepted, and look closely at every answer.
type crowd struct {
	t     *testing.T
	ada   customer
	court string
	sent  int
	group sync.WaitGroup

	mu      sync.Mutex
	made    map[int]answer // by number
	refused map[int]bool   // who was told to come again
	wrong   []string
	served  chan struct{} // one for each who has finished
}

func newCrowd(t *testing.T, ada customer, court string) *crowd {
	t.Helper()
	return &crowd{
		t: t, ada: ada, court: court, made: map[int]answer{}, refused: map[int]bool{}, served: make(chan struct{}, 1000),
	}
}

// send sets the next n customers going.
func (c *crowd) send(n int) {
	for range n {
		number := c.sent
		c.sent++
		c.group.Go(func() { c.insist(number) })
	}
}

// await waits until n more have finished.
func (c *crowd) await(n int) {
	for range n {
		<-c.served
	}
}

// wait waits until all have.
func (c *crowd) wait() { c.group.Wait() }

func (c *crowd) insist(n int) {
	ctx, cancel := context.WithTimeout(c.t.Context(), time.Minute)
	defer cancel()
	defer func() { c.served <- struct{}{} }()
	for {
		a, err := c.ada.try(ctx, fmt.Sprint("key-", n), wish{resource: c.court, hour: n})
		if c.note(n, a, err) {
			return
		}
		pause := time.NewTimer(50 * time.Millisecond)
		select {
		case <-pause.C:
		case <-ctx.Done():
		}
		pause.Stop()
	}
}

// note takes down an answer and tells whether it is the last.
func (c *crowd) note(n int, a answer, err error) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case err != nil:
		c.wrong = append(c.wrong, fmt.Sprintf("customer %d has no answer: %v", n, err))
		return true
	case a.status == http.StatusCreated:
		c.made[n] = a
		return true
	case a.status == http.StatusServiceUnavailable && a.retryAfter != "":
		c.refused[n] = true
		return false
	default:
		c.wrong = append(c.wrong, fmt.Sprintf("customer %d got %d (Retry-After %q): %s", n, a.status, a.retryAfter, a.body))
		return true
	}
}

// refusals counts who was told to come again.
func (c *crowd) refusals() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.refused)
}

// private is a PostgreSQL of the test's own, which can crash: other tests need the shared one. What it has committed is
// on disk, as in production; the others of the tests lose it.
type private struct {
	t      *testing.T
	opts   pgserver.Options
	server *pgserver.Server
	db     *testdb.DB
}

// newPrivate starts a server with an empty database.
func newPrivate(t *testing.T) *private {
	t.Helper()
	parent, err := os.MkdirTemp("", "holdfast-e2e-pg-") //nolint:usetesting // the server's account must be able to enter it
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(parent)) })
	require.NoError(t, os.Chmod(parent, 0o755))
	// Below the ports of outgoing connections: nobody may take it while the server is away.
	address, err := url.Parse("//" + freeAddress(t))
	require.NoError(t, err)
	port, err := strconv.Atoi(address.Port())
	require.NoError(t, err)
	p := &private{t: t, opts: pgserver.Options{Dir: filepath.Join(parent, "postgres"), Durable: true, Port: port}}
	p.start()
	t.Cleanup(func() { require.NoError(t, p.server.Stop()) })
	admin, err := pgx.Connect(t.Context(), p.server.URL())
	require.NoError(t, err)
	_, err = admin.Exec(t.Context(), `CREATE DATABASE holdfast`)
	require.NoError(t, err)
	require.NoError(t, admin.Close(t.Context()))
	p.db = &testdb.DB{Name: "holdfast", URL: p.server.DSN("holdfast")}
	p.db.Pool, err = pgxpool.New(t.Context(), p.db.URL)
	require.NoError(t, err)
	t.Cleanup(p.db.Pool.Close)
	return p
}

func (p *private) start() {
	p.t.Helper()
	var err error
	p.server, err = pgserver.Start(p.t.Context(), p.opts)
	require.NoError(p.t, err)
	if p.db != nil {
		p.db.Pool.Reset() // its connections have died with the server
	}
}

// crash ends the server at once, without a checkpoint, and returns when it is gone.
func (p *private) crash() {
	p.t.Helper()
	require.NoError(p.t, syscall.Kill(p.server.PID(), syscall.SIGQUIT))
	<-p.server.Done()
	require.NoError(p.t, p.server.Stop()) // removes what was temporary
}
