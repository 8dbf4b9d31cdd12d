package payments

import (
	"context"
	"errors"
	"log/slog"
	"time"
)

// Work is one kind of the reconciler's work. Step does one item and tells whether there was one to do.
type Work struct {
	Name string
	Step func(ctx context.Context) (bool, error)
}

// Works are the kinds that this package knows, in the order in which a round does them: holds that have ended first,
// since what they begin is then carried on.
func (p *Payments) Works() []Work {
	return []Work{
		{Name: "holds", Step: p.SweepHold},
		{Name: "doubts", Step: p.ResolveDoubt},
		{Name: "watches", Step: p.Watch},
	}
}

// Reconciler repeats work. The loop, the pause and the ceiling live here, so that each step stays one item.
type Reconciler struct {
	works    []Work
	interval time.Duration
	ceiling  int
	logger   *slog.Logger
}

// NewReconciler makes a reconciler that begins a round every interval and does at most ceiling items of each kind in
// one, so that a flood of one kind never starves the others.
func NewReconciler(works []Work, interval time.Duration, ceiling int, logger *slog.Logger) *Reconciler {
	return &Reconciler{works: works, interval: interval, ceiling: ceiling, logger: logger}
}

// Done counts the items that a round has done, by kind.
type Done map[string]int

// Once does one round: every kind of work, until there is none left of it or the ceiling is reached. A kind that fails
// does not keep the others from their turn; all errors are returned together.
func (r *Reconciler) Once(ctx context.Context) (Done, error) {
	done := Done{}
	var failures []error
	for _, w := range r.works {
		for done[w.Name] < r.ceiling {
			worked, err := w.Step(ctx)
			if err != nil {
				failures = append(failures, err)
				break
			}
			if !worked {
				break
			}
			done[w.Name]++
		}
		if done[w.Name] == r.ceiling {
			r.logger.WarnContext(ctx, "the round's ceiling was reached; the rest waits for the next", "work", w.Name, "ceiling", r.ceiling)
		}
	}
	return done, errors.Join(failures...)
}

// Run begins a round every interval until ctx ends. After a failed round the pause doubles, up to a minute.
func (r *Reconciler) Run(ctx context.Context) {
	pause := r.interval
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		done, err := r.Once(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			pause = min(2*pause, max(time.Minute, r.interval))
			r.logger.ErrorContext(ctx, "reconciler round", "error", err, "next_in", pause)
		default:
			pause = r.interval
			r.report(ctx, done)
		}
		timer.Reset(pause)
	}
}

func (r *Reconciler) report(ctx context.Context, done Done) {
	for name, n := range done {
		if n > 0 {
			r.logger.InfoContext(ctx, "reconciler round", "work", name, "items", n)
		}
	}
}
