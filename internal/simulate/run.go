package simulate

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"holdfast/internal/pgserver"
)

// Options say what to run.
type Options struct {
	From    uint64 // the first seed
	Seeds   int    // how many
	Workers int    // schedules at once
	// One, if it is set, is all that is run.
	One *Plan
	// AdminURL is an administrator's URL of a PostgreSQL server; empty: one is started.
	AdminURL string
	// StopAtFirst ends the run with the first violation.
	StopAtFirst bool
	// Shrink looks for a shorter schedule of each seed that fails, for so long. Zero: not.
	Shrink time.Duration
	// Each is called with each verdict, one at a time, in no order.
	Each func(Verdict)
}

// Summary is what came of a run.
type Summary struct {
	Seeds      int
	Violations int // seeds with any
	Elapsed    time.Duration
}

// Run runs seeds. An error means that the simulation itself could not go on: nothing is known about the rest.
func Run(ctx context.Context, o Options) (Summary, error) {
	began := time.Now()
	adminURL := o.AdminURL
	if adminURL == "" {
		server, err := pgserver.Start(ctx, pgserver.Options{})
		if err != nil {
			return Summary{}, err
		}
		defer func() { _ = server.Stop() }()
		adminURL = server.URL()
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	r := &runner{options: o, stop: stop}
	var group sync.WaitGroup
	for n := range max(min(o.Workers, o.Seeds), 1) {
		group.Go(func() {
			if err := r.worker(ctx, adminURL, n); err != nil {
				stop(err)
			}
		})
	}
	group.Wait()
	r.summary.Elapsed = time.Since(began)
	if r.enough {
		return r.summary, nil
	}
	return r.summary, context.Cause(ctx)
}

type runner struct {
	options Options
	stop    context.CancelCauseFunc

	mu      sync.Mutex
	next    int
	summary Summary
	enough  bool
}

func (r *runner) worker(ctx context.Context, adminURL string, n int) error {
	site, err := openSite(ctx, adminURL, n)
	if err != nil {
		return err
	}
	defer site.Close()
	for {
		r.mu.Lock()
		i := r.next
		r.next++
		r.mu.Unlock()
		if i >= r.options.Seeds || ctx.Err() != nil {
			return nil
		}
		p := Plan{Seed: r.options.From + uint64(i)} //nolint:gosec // a number of seeds
		if r.options.One != nil {
			p = *r.options.One
		}
		v, err := site.run(ctx, p)
		if err == nil && len(v.Violations) > 0 && r.options.Shrink > 0 {
			v, err = site.shrink(ctx, v, r.options.Shrink)
		}
		if err != nil {
			if ctx.Err() != nil {
				return nil // it was told to stop
			}
			return err
		}
		r.report(v)
	}
}

func (r *runner) report(v Verdict) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.enough {
		return
	}
	r.summary.Seeds++
	if len(v.Violations) > 0 {
		r.summary.Violations++
	}
	if r.options.Each != nil {
		r.options.Each(v)
	}
	if r.options.StopAtFirst && len(v.Violations) > 0 {
		r.enough = true
		r.stop(fmt.Errorf("seed %d failed", v.Seed))
	}
}

// shrink looks for a schedule of the same seed with fewer steps that breaks the same promise: first a shorter one, then
// without single steps.
func (s *site) shrink(ctx context.Context, v Verdict, within time.Duration) (Verdict, error) {
	began := time.Now()
	try := func(upTo int, skip ...int) (bool, error) {
		p := Plan{Seed: v.Seed, UpTo: upTo, Skip: map[int]bool{}}
		for _, i := range skip {
			p.Skip[i] = true
		}
		tried, err := s.run(ctx, p)
		if err != nil || len(tried.Violations) == 0 || tried.Violations[0].Invariant != v.Violations[0].Invariant {
			return false, err
		}
		v = tried
		return true, nil
	}
	for low := 1; low < v.UpTo && time.Since(began) < within; {
		middle := (low + v.UpTo) / 2
		failed, err := try(middle, v.Skip...)
		if err != nil {
			return v, err
		}
		if !failed {
			low = middle + 1
		}
	}
	for i := v.UpTo - 1; i >= 0 && time.Since(began) < within; i-- {
		if _, err := try(v.UpTo, append(slices.Clone(v.Skip), i)...); err != nil {
			return v, err
		}
	}
	return v, nil
}
