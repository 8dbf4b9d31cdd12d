package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	firstPause   = 200 * time.Millisecond
	longestPause = 5 * time.Second
	stableAfter  = 30 * time.Second // a run this long makes the next failure a first one again
)

// supervisor keeps services running: what dies is started again, as a service manager would.
type supervisor struct {
	out      *printer
	onChange func() // called when a pid has changed

	cancel context.CancelFunc
	ctx    context.Context //nolint:containedctx // the life of the supervision, which outlives any call
	loops  sync.WaitGroup

	mu      sync.Mutex
	running []*supervised // in the order of their start
}

type supervised struct {
	*service
	mu      sync.Mutex
	current instance
}

func newSupervisor(out *printer, onChange func()) *supervisor {
	ctx, cancel := context.WithCancel(context.Background())
	return &supervisor{out: out, onChange: onChange, ctx: ctx, cancel: cancel}
}

// launch starts services side by side and waits until each serves. What has started stays with the supervisor, also
// when another failed: stop ends it.
func (s *supervisor) launch(ctx context.Context, services ...*service) error {
	all, ctx := errgroup.WithContext(ctx)
	for _, service := range services {
		all.Go(func() error { return s.launchOne(ctx, service) })
	}
	return all.Wait()
}

func (s *supervisor) launchOne(ctx context.Context, service *service) error {
	started, err := service.start(ctx)
	if err != nil {
		return err
	}
	kept := &supervised{service: service, current: started}
	s.mu.Lock()
	s.running = append(s.running, kept)
	s.mu.Unlock()
	if err := service.awaitReady(ctx, started); err != nil {
		return err
	}
	s.out.progress("%s is ready (pid %d)", service.name, started.PID())
	s.loops.Go(func() { s.keep(kept, started) })
	return nil
}

// keep starts a service again whenever it has ended, until the supervision ends.
func (s *supervisor) keep(kept *supervised, current instance) {
	pause := firstPause
	for {
		began := time.Now()
		select {
		case <-s.ctx.Done():
			return
		case <-current.Done():
		}
		if time.Since(began) > stableAfter {
			pause = firstPause
		}
		s.out.progress("%s (pid %d) has died, starting it again", kept.name, current.PID())
		_ = current.Stop() // cleans up; how it died is in its log
		next := s.again(kept, &pause)
		if next == nil {
			return
		}
		current = next
	}
}

// again starts a service until it has started, with a growing pause. Nil means that the supervision has ended.
func (s *supervisor) again(kept *supervised, pause *time.Duration) instance {
	for {
		select {
		case <-s.ctx.Done():
			return nil
		case <-time.After(*pause):
		}
		*pause = min(*pause*2, longestPause)
		started, err := kept.start(s.ctx)
		if err != nil {
			s.out.progress("%s: %v", kept.name, err)
			continue
		}
		kept.mu.Lock()
		kept.current = started
		kept.mu.Unlock()
		s.onChange()
		s.out.progress("%s runs again (pid %d)", kept.name, started.PID())
		return started
	}
}

// pids is the process id of each service by name.
func (s *supervisor) pids() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	pids := make(map[string]int, len(s.running))
	for _, kept := range s.running {
		kept.mu.Lock()
		pids[kept.name] = kept.current.PID()
		kept.mu.Unlock()
	}
	return pids
}

// stop ends the supervision and then the services, last started first.
func (s *supervisor) stop() error {
	s.cancel()
	s.loops.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	var problems []error
	for i := len(s.running) - 1; i >= 0; i-- {
		kept := s.running[i]
		if err := kept.current.Stop(); err != nil {
			problems = append(problems, errors.Join(errors.New(kept.name), err))
		}
	}
	return errors.Join(problems...)
}
