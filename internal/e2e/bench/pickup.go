package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/nats-io/nats-server/v2/server"

	"holdfast/domain"
	"holdfast/internal/bookings"
	"holdfast/outbox"
	"holdfast/payments/stripesim"
)

const (
	lightRate  = 50  // bookings a second: nobody waits for anybody
	middleRate = 100 // half the target
	pickupRate = 200 // the rate of the target
	drainLimit = time.Minute
)

// latency is how long after a booking was made something happened, in milliseconds.
type latency struct {
	P50 float64 `json:"p50_ms"`
	P99 float64 `json:"p99_ms"`
}

// pickupSample is one round's.
type pickupSample struct {
	Round       int        `json:"round"`
	Target      int        `json:"target"` // bookings a second that there should be
	Bookings    int        `json:"bookings"`
	Rate        float64    `json:"rate"`
	Charge      latency    `json:"charge"` // until the charge's first send to the provider was recorded
	Event       latency    `json:"event"`  // until the stream had acknowledged the confirmed event
	Told        float64    `json:"told"`   // events a second until the last one; less than the rate means that a queue grew
	CPU         perBooking `json:"cpu_ms_per_booking"`
	Calibration float64    `json:"calibration"`
}

// perBooking is processor time in milliseconds, the booking itself included.
type perBooking struct {
	PostgreSQL float64 `json:"postgresql"`
	Worker     float64 `json:"worker"`
	Bench      float64 `json:"bench"` // accepts the bookings, and is the provider and the broker
}

// pickup books at a fixed rate, whatever the answers take, while a worker of its own carries the effects out.
func (m *measurer) pickup(ctx context.Context) (err error) {
	broker, err := startNATS(m.bed.dir)
	if err != nil {
		return err
	}
	defer broker.WaitForShutdown()
	defer broker.Shutdown()
	provider, err := stripesim.Start(ctx, "127.0.0.1:0", stripesim.Config{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, provider.Close()) }() //nolint:contextcheck // it is closed also when ctx has ended
	worker, err := m.bed.start(ctx, "worker", []string{"run"}, func(address string) []string {
		return []string{
			"DATABASE_URL=" + m.bed.server.DSN(pickupDB), "NATS_URL=" + broker.ClientURL(), "METRICS_ADDR=" + address,
			"STRIPE_API_BASE=" + provider.URL, "STRIPE_API_KEY=sk_test_bench", "LOG_LEVEL=warn",
		}
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, worker.stop()) }()
	pool, err := m.bed.open(ctx, pickupDB, poolSize)
	if err != nil {
		return err
	}
	defer pool.Close()
	waker := outbox.NewWaker(pool, slog.New(slog.DiscardHandler)) //nolint:contextcheck // it lives until Close
	defer waker.Close()
	service := bookings.New(pool, waker, bookings.Config{})

	at := load{bed: m.bed, pool: pool, service: service, worker: worker.child.PID()}
	if _, err := at.run(ctx, lightRate, lightRate/2); err != nil { // warm up
		return err
	}
	for _, phase := range []struct{ rate, seconds int }{{lightRate, 3 * m.seconds / 2}, {middleRate, 2 * m.seconds}, {pickupRate, 5 * m.seconds / 2}} {
		s, err := at.run(ctx, phase.rate, phase.rate*phase.seconds)
		if err != nil {
			return err
		}
		s.Round = m.round
		m.report.Pickups = append(m.report.Pickups, s)
		m.out.progress("  pick-up at %.0f/s, told at %.0f/s: charge p50 %.1f ms, p99 %.1f ms; event p50 %.1f ms, p99 %.1f ms; CPU ms: %.1f PostgreSQL, %.1f worker, %.1f bench",
			s.Rate, s.Told, s.Charge.P50, s.Charge.P99, s.Event.P50, s.Event.P99, s.CPU.PostgreSQL, s.CPU.Worker, s.CPU.Bench)
	}
	return nil
}

// load books at a rate and waits for the end of it.
type load struct {
	bed     *bed
	pool    *pgxpool.Pool
	service *bookings.Service
	worker  int // its process id
}

func (l load) run(ctx context.Context, rate, n int) (pickupSample, error) {
	client := domain.NewID[domain.ClientID]()
	s := pickupSample{Target: rate, Bookings: n, Calibration: calibrate()}
	before := cpuTimes(l.bed.server.PID(), l.worker)
	took, err := l.bed.steady(ctx, l.service, client, rate, n)
	if err != nil {
		return s, err
	}
	s.Rate = float64(n) / took.Seconds()
	if err := told(ctx, l.pool); err != nil {
		return s, err
	}
	after := cpuTimes(l.bed.server.PID(), l.worker)
	each := func(a, b time.Duration) float64 { return float64((a - b).Microseconds()) / 1000 / float64(n) }
	s.CPU = perBooking{
		PostgreSQL: each(after.postgres, before.postgres), Worker: each(after.worker, before.worker), Bench: each(after.bench, before.bench),
	}
	var counted int
	err = l.pool.QueryRow(ctx, `
		WITH story AS (
			SELECT b.created_at, o.finished_at, extract(epoch FROM (SELECT min(c.first_sent_at) FROM provider_calls c WHERE c.payment_id = p.id) - b.created_at) * 1000 AS charge,
			       extract(epoch FROM o.finished_at - b.created_at) * 1000 AS event
			  FROM bookings b
			  JOIN payments p ON p.booking_id = b.id
			  JOIN outbox o ON o.booking_id = b.id AND o.event_type = 'confirmed'
			 WHERE b.client_id = $1)
		SELECT count(charge), percentile_disc(0.5) WITHIN GROUP (ORDER BY charge)::float8, percentile_disc(0.99) WITHIN GROUP (ORDER BY charge)::float8,
		       percentile_disc(0.5) WITHIN GROUP (ORDER BY event)::float8, percentile_disc(0.99) WITHIN GROUP (ORDER BY event)::float8,
		       (count(*) / extract(epoch FROM max(finished_at) - min(created_at)))::float8
		  FROM story`, client.UUID).Scan(&counted, &s.Charge.P50, &s.Charge.P99, &s.Event.P50, &s.Event.P99, &s.Told)
	if err != nil {
		return s, fmt.Errorf("read the latencies: %w", err)
	}
	if counted != n {
		return s, fmt.Errorf("%w: %d bookings were made, and %d charges sent", errFailed, n, counted)
	}
	return s, nil
}

// told waits until nothing is left to be done: the stream has acknowledged every event.
func told(ctx context.Context, pool *pgxpool.Pool) error {
	return until(ctx, drainLimit, "every booking is confirmed and told", func() (bool, error) {
		var left bool
		err := pool.QueryRow(ctx, `SELECT EXISTS (SELECT FROM outbox WHERE status IN ('pending', 'in_doubt', 'parked'))`).Scan(&left)
		return !left, err
	})
}

// steady books n slots, each at its own instant.
func (b *bed) steady(ctx context.Context, service *bookings.Service, client domain.ClientID, rate, n int) (time.Duration, error) {
	from, began := b.take(n), time.Now()
	errs := make([]error, n)
	var all sync.WaitGroup
	timer := time.NewTimer(0)
	defer timer.Stop()
	for i := range n {
		timer.Reset(time.Until(began.Add(time.Duration(i) * time.Second / time.Duration(rate))))
		select {
		case <-ctx.Done():
			all.Wait()
			return 0, ctx.Err()
		case <-timer.C:
		}
		all.Go(func() {
			response, err := service.Accept(ctx, client, slotKey(i), slotRequest(from+i))
			if err == nil && response.Status != http.StatusCreated {
				err = fmt.Errorf("%w: answered %d %s", errFailed, response.Status, response.Body)
			}
			errs[i] = err
		})
	}
	all.Wait()
	return time.Since(began), errors.Join(errs...)
}

// startNATS starts a broker in this process that the worker reaches over loopback. Acknowledged means on disk.
func startNATS(dir string) (*server.Server, error) {
	store, err := os.MkdirTemp(dir, "nats-")
	if err != nil {
		return nil, err
	}
	broker, err := server.NewServer(&server.Options{
		ServerName: "bench", Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: store,
		SyncAlways: true, NoLog: true, NoSigs: true,
	})
	if err != nil {
		return nil, fmt.Errorf("nats: %w", err)
	}
	broker.Start()
	if !broker.ReadyForConnections(readyWithin) {
		broker.Shutdown()
		return nil, errors.New("nats: not ready in time")
	}
	return broker, nil
}
