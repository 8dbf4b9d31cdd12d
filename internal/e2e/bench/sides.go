package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"holdfast/domain"
	"holdfast/internal/bookings"
	"holdfast/internal/clients"
	"holdfast/outbox"
)

const (
	maxRate = 20_000                 // bookings a second that there are slots for
	warmFor = 300 * time.Millisecond // a side's connections are opened and have their plans after it
)

// booked is what one measurement did.
type booked struct {
	side   string
	client domain.ClientID
	from   int // its first slot
	done   int
	steady int // of them, those that the rate is of
	took   time.Duration
}

func (b booked) rate() float64 { return float64(b.steady) / b.took.Seconds() }

// The n-th slot is an hour of one of the resources. All sides take their slots in the same order.
func slotResource(n int) domain.ResourceID {
	return domain.ResourceID{UUID: uuid.MustParse(fmt.Sprintf("00000000-0000-7000-8000-%012x", n%resources))}
}

func slotStart(n int) time.Time {
	return time.Date(2030, time.January, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(n/resources) * time.Hour)
}

func slotKey(n int) string { return fmt.Sprintf("bench-%010d", n) }

func slotRequest(n int) bookings.Request {
	start := slotStart(n)
	return bookings.Request{
		ResourceID: slotResource(n), Start: start, End: start.Add(time.Hour),
		CustomerName: "Ada Lovelace", CustomerEmail: "ada@example.org", PaymentMethod: "pm_card_visa",
	}
}

// pgbenchFunctions give pgbench what the store's process makes for itself: ids in the order of time, and resources by
// number. They cost microseconds of a transaction of hundreds.
const pgbenchFunctions = `
	CREATE FUNCTION bench_id() RETURNS uuid LANGUAGE sql VOLATILE AS $$
		SELECT encode(set_bit(set_bit(overlay(uuid_send(gen_random_uuid())
			PLACING substring(int8send((extract(epoch FROM clock_timestamp()) * 1000)::bigint) FROM 3) FROM 1 FOR 6), 52, 1), 53, 1), 'hex')::uuid;
	$$;
	CREATE FUNCTION bench_resource(n int) RETURNS uuid LANGUAGE sql IMMUTABLE AS $$
		SELECT ('00000000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid;
	$$`

// pgbenchScript is the statement of the store, with everything of it made on the spot.
const pgbenchScript = `\set i :i + 1
\set n :base + (:i - 1) * :clients + :client_id
\set resource :n % 1000
\set hour :n / 1000
SELECT outcome, status, body, location, fingerprint, fingerprint_version, expires_at, expired
  FROM accept_booking(:client::uuid, '/v1/bookings', 'bench-' || lpad(:n::text, 10, '0'),
       decode('000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f', 'hex'), 1::smallint, interval '24 hours',
       bench_id(), bench_id(), bench_id(), bench_id(), bench_resource(:resource::int),
       timestamptz '2030-01-01 00:00:00Z' + :hour::int * interval '1 hour', timestamptz '2030-01-01 01:00:00Z' + :hour::int * interval '1 hour', 1,
       NULL, NULL, 'Ada Lovelace', 'ada@example.org', 'pm_card_visa', '{}');
`

// pgbench is the unit of the comparison: the same function, called by PostgreSQL's own load generator.
func (m *measurer) pgbench(ctx context.Context, n int) (booked, error) {
	b := m.fresh("pgbench", n)
	script := filepath.Join(m.bed.dir, "accept.sql")
	if err := os.WriteFile(script, []byte(pgbenchScript), 0o600); err != nil {
		return booked{}, err
	}
	u, err := url.Parse(m.bed.server.DSN(throughputDB))
	if err != nil {
		return booked{}, err
	}
	password, _ := u.User.Password()
	log := filepath.Join(m.bed.dir, "pgbench-"+b.client.String())
	cmd := exec.CommandContext(ctx, m.bed.pgbench, "--no-vacuum", "--protocol=prepared", //nolint:gosec // PostgreSQL's own program
		"--client="+strconv.Itoa(n), "--jobs="+strconv.Itoa(min(n, 2)), "--time="+strconv.Itoa(m.seconds),
		"--define=i=0", "--define=clients="+strconv.Itoa(n), "--define=base="+strconv.Itoa(b.from), "--define=client="+b.client.String(),
		"--log", "--log-prefix="+log, "--file="+script)
	cmd.Env = append(os.Environ(), "PGHOST="+u.Hostname(), "PGPORT="+u.Port(), "PGUSER="+u.User.Username(), "PGPASSWORD="+password,
		"PGDATABASE="+throughputDB, "PGSSLMODE=disable")
	output, err := cmd.CombinedOutput()
	if err != nil {
		return booked{}, fmt.Errorf("pgbench: %w\n%s", err, output)
	}
	logs, err := filepath.Glob(log + "*")
	if err != nil {
		return booked{}, err
	}
	if b.done, b.steady, b.took, err = readLogs(logs); err != nil {
		return booked{}, err
	}
	return b, m.bed.check(ctx, b)
}

func (m *measurer) fresh(side string, clients int) booked {
	return booked{side: side, client: domain.NewID[domain.ClientID](), from: m.bed.take(m.seconds*maxRate + clients)}
}

// store is the service in this process, with its waker, as the API has it.
func (m *measurer) store(ctx context.Context, n int) (booked, error) {
	b, err := m.bed.store(ctx, m.fresh("store", n), n, time.Duration(m.seconds)*time.Second)
	if err != nil {
		return booked{}, err
	}
	return b, m.bed.check(ctx, b)
}

func (b *bed) store(ctx context.Context, to booked, n int, d time.Duration) (booked, error) {
	waker := outbox.NewWaker(b.pool, slog.New(slog.DiscardHandler)) //nolint:contextcheck // it lives until Close
	defer waker.Close()
	service := bookings.New(b.pool, waker, bookings.Config{})
	var err error
	to.steady, to.took, err = loop(ctx, n, d, func(ctx context.Context, _, i int) error {
		slot := to.from + i
		response, err := service.Accept(ctx, to.client, slotKey(slot), slotRequest(slot))
		if err == nil && (response.Status != http.StatusCreated || response.Replayed) {
			err = fmt.Errorf("%w: slot %d was answered %d %s", errFailed, slot, response.Status, response.Body)
		}
		return err
	})
	to.done = to.steady
	return to, err
}

// warm books for a while what nobody counts, so that the connections of both pools are open and have their plans.
func (b *bed) warm(ctx context.Context) error {
	to := booked{client: domain.NewID[domain.ClientID](), from: b.take(maxRate)}
	if _, err := b.store(ctx, to, poolSize, warmFor); err != nil {
		return err
	}
	_, err := b.http(ctx, booked{from: b.take(maxRate)}, poolSize, warmFor)
	return err
}

// http is the built API over sockets. The generator speaks the least HTTP there is, since it has the same cores.
func (m *measurer) http(ctx context.Context, n int) (booked, error) {
	b, err := m.bed.http(ctx, m.fresh("http", n), n, time.Duration(m.seconds)*time.Second)
	if err != nil {
		return booked{}, err
	}
	return b, m.bed.check(ctx, b)
}

func (b *bed) http(ctx context.Context, to booked, n int, d time.Duration) (booked, error) {
	name := domain.NewID[domain.ClientID]().String()
	made, err := clients.New(b.pool).Create(ctx, name, []clients.Scope{clients.BookingsWrite}, "", time.Hour)
	if err != nil {
		return booked{}, err
	}
	to.client = made.ClientID
	wires := make([]*wire, n)
	for i := range wires {
		if wires[i], err = dial(ctx, b.api.address, made.Token.Reveal()); err != nil {
			return booked{}, err
		}
		defer func() { _ = wires[i].conn.Close() }()
	}
	to.steady, to.took, err = loop(ctx, n, d, func(_ context.Context, worker, i int) error {
		slot := to.from + i
		status, body, err := wires[worker].book(slot)
		if err == nil && status != http.StatusCreated {
			err = fmt.Errorf("%w: slot %d was answered %d %s", errFailed, slot, status, body)
		}
		return err
	})
	to.done = to.steady
	return to, err
}

// replay sends the requests of an earlier measurement of the store once more.
func (m *measurer) replay(ctx context.Context, n int, earlier booked) (booked, error) {
	service := bookings.New(m.bed.pool, noWaker{}, bookings.Config{})
	b := booked{side: "replay", client: earlier.client, from: earlier.from}
	var err error
	b.steady, b.took, err = loop(ctx, n, time.Duration(m.seconds)*time.Second/2, func(ctx context.Context, _, i int) error {
		slot := earlier.from + i%earlier.done
		response, err := service.Accept(ctx, earlier.client, slotKey(slot), slotRequest(slot))
		if err == nil && !response.Replayed {
			err = fmt.Errorf("%w: slot %d was booked, not replayed", errFailed, slot)
		}
		return err
	})
	if err != nil {
		return booked{}, err
	}
	return b, m.bed.check(ctx, earlier)
}

type noWaker struct{}

// Wake does nothing: a replay has nothing to wake for.
func (noWaker) Wake(domain.EffectKind) {}

// hot lets 16 clients contend for the same hours of one resource: ranges of one to three hours that overlap, and
// where there are several places, one to three of them. Some get what they ask for and the rest are refused; nobody may be
// caught in a deadlock, not even in one that a retry hides.
func (m *measurer) hot(ctx context.Context, places int) error {
	const n = 16
	before, err := m.bed.deadlocksSoFar(ctx)
	if err != nil {
		return err
	}
	pool, err := m.bed.open(ctx, throughputDB, poolSize)
	if err != nil {
		return err
	}
	defer pool.Close()
	service := bookings.New(pool, noWaker{}, bookings.Config{})
	resource, err := service.CreateResource(ctx, domain.Resource{
		Name: "Hot", TimeZone: "UTC", Places: places, UnitMinutes: 60, Price: domain.Money{Amount: 2500, Currency: "EUR"}, Hold: 15 * time.Minute,
	})
	if err != nil {
		return err
	}
	to := booked{client: domain.NewID[domain.ClientID]()}
	var won atomic.Int64
	speed := calibrate()
	to.steady, to.took, err = loop(ctx, n, time.Duration(m.seconds)*time.Second/2, func(ctx context.Context, _, i int) error {
		r := slotRequest(0)
		r.ResourceID = resource.ID
		// As many ask for an hour as there are places in it, and 16 more.
		r.Start = r.Start.Add(time.Duration(i/(n+places)+rand.IntN(3)) * time.Hour) //nolint:gosec // no secret
		r.End = r.Start.Add(time.Duration(1+rand.IntN(3)) * time.Hour)              //nolint:gosec // no secret
		r.Quantity = 1 + rand.IntN(min(places, 3))                                  //nolint:gosec // no secret
		response, err := service.Accept(ctx, to.client, slotKey(i), r)
		if err == nil && response.Status == http.StatusCreated {
			won.Add(1)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("one hot resource of %d places: %w", places, err)
	}
	var rows int64
	if err := pool.QueryRow(ctx, `SELECT count(*) FROM bookings WHERE client_id = $1`, to.client.UUID).Scan(&rows); err != nil {
		return err
	}
	if rows != won.Load() {
		return fmt.Errorf("%w: %d bookings of the hot resource were claimed, and %d are there", errFailed, won.Load(), rows)
	}
	pool.Close() // its counters are complete now, or soon
	after, err := m.bed.deadlocksSoFar(ctx)
	if err != nil {
		return err
	}
	m.note(sample{
		Side: fmt.Sprintf("hot%d", places), Clients: n, Rate: to.rate(), Calibration: speed,
		Won: int(won.Load()), Deadlocks: after - before,
	})
	return nil
}

// deadlocksSoFar may miss what open connections have not told yet; the run's last count does not.
func (b *bed) deadlocksSoFar(ctx context.Context) (n int, err error) {
	err = b.admin.QueryRow(ctx, `SELECT sum(deadlocks)::int FROM pg_stat_database`).Scan(&n)
	return n, err
}

// check counts the rows that a measurement claims to have made: booking, payment, key, charge and event of each.
func (b *bed) check(ctx context.Context, claimed booked) error {
	var made, keys, paid, effects int
	err := b.pool.QueryRow(ctx, `
		WITH mine AS MATERIALIZED (SELECT id FROM bookings WHERE client_id = $1 AND status = 'held')
		SELECT (SELECT count(*) FROM mine), (SELECT count(*) FROM idempotency_keys WHERE client_id = $1 AND response_status = 201),
		       (SELECT count(*) FROM payments p JOIN mine ON p.booking_id = mine.id),
		       (SELECT count(*) FROM outbox o JOIN mine ON o.booking_id = mine.id)`, claimed.client.UUID).
		Scan(&made, &keys, &paid, &effects)
	if err != nil {
		return fmt.Errorf("count what was booked: %w", err)
	}
	if n := claimed.done; made != n || keys != n || paid != n || effects != 2*n {
		return fmt.Errorf("%w: %s claims %d bookings, and there are %d, with %d keys, %d payments and %d effects",
			errFailed, claimed.side, n, made, keys, paid, effects)
	}
	return nil
}

// loop has n clients do the i-th piece of work, each as soon as its last one is done, for a while. It returns how many were
// done and how long all of it took.
func loop(ctx context.Context, n int, d time.Duration, work func(ctx context.Context, worker, i int) error) (int, time.Duration, error) {
	var next, done atomic.Int64
	began := time.Now()
	errs := make([]error, n)
	var failed atomic.Bool
	var all sync.WaitGroup
	for worker := range n {
		all.Go(func() {
			for time.Since(began) < d && !failed.Load() {
				if err := work(ctx, worker, int(next.Add(1)-1)); err != nil {
					errs[worker] = err
					failed.Store(true)
					return
				}
				done.Add(1)
			}
		})
	}
	all.Wait()
	return int(done.Load()), time.Since(began), errors.Join(errs...)
}

// wireBody is a booking request's.
func wireBody(into *bytes.Buffer, slot int) {
	start := slotStart(slot)
	_, _ = fmt.Fprintf(into, `{"resource_id":%q,"start":%q,"end":%q,"customer":{"name":"Ada Lovelace","email":"ada@example.org"},"payment_method":"pm_card_visa"}`,
		slotResource(slot), start.Format(time.RFC3339), start.Add(time.Hour).Format(time.RFC3339))
}
