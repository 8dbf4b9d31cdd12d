package payments

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"holdfast/internal/telemetry"
)

// Work is one kind of the reconciler's work. Step does one item and tells whether there was one to do.
type Work struct {
	Name     string
	Step     func(ctx context.Context) (bool, error)
	Parallel int           // loops of it in one process, for items that wait for the provider; 0 means 1
	Interval time.Duration // pause between two rounds of it; 0: the rhythm's. Rounds of a kind that has its own are not logged
}

// Works are the kinds that this package knows, in the order in which a round does them: holds that have ended first,
// since what they begin is then carried on.
func (p *Payments) Works() []Work {
	return []Work{
		{Name: "holds", Step: p.SweepHold},
		{Name: "doubts", Step: p.ResolveDoubt, Parallel: 4},
		{Name: "watches", Step: p.Watch, Parallel: 2},
		{Name: "refunds", Step: p.WatchRefund},
		{Name: "event sweep", Step: p.SweepEvents},
		{Name: "transactions", Step: p.IngestTransactions, Interval: p.config.IngestInterval},
		{Name: "missing transactions", Step: p.ReadMissing, Interval: p.config.IngestInterval},
		{Name: "events", Step: p.SettleEvent, Parallel: 4, Interval: p.config.EventInterval},
	}
}

// Rhythm is how a reconciler goes about its work.
type Rhythm struct {
	Interval time.Duration // pause between two rounds of a kind
	Ceiling  int           // most items of a kind in one round, so that a flood leaves time to look up
	Step     time.Duration // time limit of one step; less than a lease, so that nobody else takes the item meanwhile
	Drain    time.Duration // how long a step may go on once the reconciler is told to stop
}

// Reconciler repeats work. The loop, the pause and the ceiling live here, so that each step stays one item.
type Reconciler struct {
	works  []Work
	rhythm Rhythm
	logger *slog.Logger
}

// NewReconciler makes a reconciler.
func NewReconciler(works []Work, rhythm Rhythm, logger *slog.Logger) *Reconciler {
	return &Reconciler{works: works, rhythm: rhythm, logger: logger}
}

// Done counts the items that a round has done, by kind.
type Done map[string]int

// Once does one round of every kind of work, one kind after the other. A kind that fails does not keep the others from
// their turn; all errors are returned together.
func (r *Reconciler) Once(ctx context.Context) (Done, error) {
	done := Done{}
	var failures []error
	for _, w := range r.works {
		n, err := r.round(ctx, w)
		failures = append(failures, err)
		if n > 0 {
			done[w.Name] = n
		}
	}
	return done, errors.Join(failures...)
}

// Run repeats every kind of work until ctx ends, each in a loop of its own: a provider that hangs must not keep holds
// from ending or lost jobs from being revived. A step that runs when ctx ends may finish.
func (r *Reconciler) Run(ctx context.Context) {
	var loops sync.WaitGroup
	for _, w := range r.works {
		for range max(w.Parallel, 1) {
			loops.Go(func() { r.loop(ctx, w) })
		}
	}
	loops.Wait()
}

// loop begins a round every interval. After a failed round the pause doubles, up to a minute.
func (r *Reconciler) loop(ctx context.Context, w Work) {
	interval := cmp.Or(w.Interval, r.rhythm.Interval)
	pause := interval
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		n, err := r.round(ctx, w)
		if n > 0 && w.Interval == 0 {
			r.logger.InfoContext(ctx, "reconciler round", "work", w.Name, "items", n)
		}
		if err != nil && ctx.Err() == nil {
			pause = min(2*pause, max(time.Minute, interval))
			r.logger.ErrorContext(ctx, "reconciler round failed", "work", w.Name, "error", err, "next_in", pause.String())
		} else {
			pause = interval
		}
		timer.Reset(pause)
	}
}

// maxFailures is how many steps of a round may fail: one item that always fails must not keep the others from their turn,
// and a database that is away must not be asked a thousand times.
const maxFailures = 3

// round takes steps until there is no work left, the ceiling is reached, too many steps fail or ctx ends.
func (r *Reconciler) round(ctx context.Context, w Work) (n int, err error) {
	var failures []error
	for ctx.Err() == nil {
		if n == r.rhythm.Ceiling {
			r.logger.WarnContext(ctx, "the round's ceiling was reached; the rest waits for the next", "work", w.Name, "ceiling", n)
			break
		}
		worked, err := r.step(ctx, w)
		if err != nil {
			if failures = append(failures, err); len(failures) == maxFailures {
				break
			}
			continue
		}
		if !worked {
			break
		}
		n++
	}
	return n, errors.Join(failures...)
}

// step takes one step under its time limit and a trace of its own. The end of ctx does not cut it off at once: a send that
// is under way is better brought home than left as a doubt.
func (r *Reconciler) step(ctx context.Context, w Work) (bool, error) {
	within, cancel := context.WithTimeout(telemetry.WithTrace(context.WithoutCancel(ctx), telemetry.NewTrace()), r.rhythm.Step)
	defer cancel()
	stop := context.AfterFunc(ctx, func() {
		select {
		case <-time.After(r.rhythm.Drain):
			cancel()
		case <-within.Done():
		}
	})
	defer stop()
	return w.Step(within)
}
