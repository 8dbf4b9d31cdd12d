package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

const (
	defaultRounds  = 5
	defaultSeconds = 2
	outputDir      = "bin/bench"
	compareAt      = 8    // clients at which the last line compares
	flushEmulated  = 1000 // microseconds
)

var errFailed = errors.New("the measurement does not hold")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// settings shorten a run, or make it longer.
type settings struct {
	rounds  int
	seconds int
}

func readSettings() (settings, error) {
	s := settings{rounds: defaultRounds, seconds: defaultSeconds}
	for name, value := range map[string]*int{"BENCH_ROUNDS": &s.rounds, "BENCH_SECONDS": &s.seconds} {
		text, given := os.LookupEnv(name)
		if !given {
			continue
		}
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > 60 {
			return settings{}, fmt.Errorf("%s: %q is not a whole number from 1 to 60", name, text)
		}
		*value = n
	}
	return s, nil
}

func run(ctx context.Context) (err error) {
	s, err := readSettings()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(outputDir, 0o750); err != nil {
		return err
	}
	out := newPrinter(os.Stderr)
	b, err := newBed(ctx, out)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close(context.WithoutCancel(ctx))) }()
	result, err := measure(ctx, b, s, out)
	if err != nil {
		return err
	}
	if err := b.stopClients(); err != nil {
		return err
	}
	if result.Deadlocks, err = b.deadlocks(ctx); err != nil {
		return err
	}
	result.finish(b)
	if err := result.writeJSON(filepath.Join(outputDir, "bench.json")); err != nil {
		return err
	}
	if err := writePlot(filepath.Join(outputDir, "bench.svg"), result); err != nil {
		return err
	}
	result.print(os.Stdout)
	if result.Deadlocks > 0 {
		return fmt.Errorf("%w: %d deadlocks", errFailed, result.Deadlocks)
	}
	return nil
}

// measure runs the rounds. Nothing that is compared is further apart than a few seconds.
func measure(ctx context.Context, b *bed, s settings, out *printer) (*report, error) {
	r := &report{Started: time.Now().UTC(), Rounds: s.rounds, Seconds: s.seconds}
	for round := range s.rounds {
		out.progress("round %d of %d", round+1, s.rounds)
		m := &measurer{bed: b, out: out, report: r, round: round, seconds: s.seconds}
		if err := m.all(ctx); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// measurer makes the measurements of one round.
type measurer struct {
	bed     *bed
	out     *printer
	report  *report
	round   int
	seconds int
}

func (m *measurer) all(ctx context.Context) error {
	flushes := []int{0, flushEmulated}
	for i := range flushes {
		if err := m.throughput(ctx, flushes[(i+m.round)%len(flushes)]); err != nil {
			return err
		}
	}
	if err := m.bed.setFlush(ctx, 0); err != nil {
		return err
	}
	for _, places := range []int{1, 50} {
		if err := m.hot(ctx, places); err != nil {
			return err
		}
	}
	return m.pickup(ctx)
}

// throughput compares the sides at each number of clients.
func (m *measurer) throughput(ctx context.Context, flush int) error {
	if err := m.bed.setFlush(ctx, flush); err != nil {
		return err
	}
	if err := m.bed.settle(ctx); err != nil {
		return err
	}
	sides := []func(context.Context, int) (booked, error){m.pgbench, m.store, m.http}
	for i, clients := range []int{1, compareAt, 16} {
		var stored booked
		for j := range sides {
			at := (i + j + m.round) % len(sides)
			speed := calibrate()
			done, err := sides[at](ctx, clients)
			if err != nil {
				return err
			}
			m.note(sample{Side: done.side, Clients: clients, FlushMicros: flush, Rate: done.rate(), Calibration: speed})
			if done.side == "store" {
				stored = done
			}
		}
		if clients != compareAt || flush != 0 {
			continue
		}
		speed := calibrate()
		done, err := m.replay(ctx, clients, stored)
		if err != nil {
			return err
		}
		m.note(sample{Side: done.side, Clients: clients, Rate: done.rate(), Calibration: speed})
	}
	return nil
}

func (m *measurer) note(s sample) {
	s.Round = m.round
	m.report.Samples = append(m.report.Samples, s)
	flush := ""
	if s.FlushMicros > 0 {
		flush = ", flush 1 ms"
	}
	m.out.progress("  %-8s %2d clients%s: %.0f/s", s.Side, s.Clients, flush, s.Rate)
}
