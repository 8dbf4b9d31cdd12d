package stripesim

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// Advance moves the virtual clock forward: keys older than the retention are forgotten and charges left half-done by partial_500
// roll forward, what is pending ends, and webhooks that were refused are delivered again. Objects born earlier keep their created
// time. It returns the new virtual time. The clock never goes back.
func (s *Simulator) Advance(d time.Duration) time.Time {
	w := s.world.Load()
	w.mu.Lock()
	defer w.mu.Unlock()
	if d > 0 {
		w.offset += d
		if !w.standing.IsZero() {
			w.standing = w.standing.Add(d)
		}
		w.moved()
	}
	return w.now()
}

// StandAt moves the virtual clock forward to a moment and makes it stand there until it is moved again, or for good: what a day's
// last second is does not then depend on how fast the machine is. It fails if the moment has passed.
func (s *Simulator) StandAt(at time.Time) error {
	w := s.world.Load()
	w.mu.Lock()
	defer w.mu.Unlock()
	if now := w.now(); at.Before(now) {
		return fmt.Errorf("the clock says %s, and does not go back to %s", now.UTC().Format(time.RFC3339Nano), at.UTC().Format(time.RFC3339Nano))
	}
	w.standing = at
	w.moved()
	return nil
}

// moved lets happen what the clock's new time brings. The caller holds mu.
func (w *world) moved() {
	close(w.advanced)
	w.advanced = make(chan struct{})
	w.rollForward()
	w.pass()
}

// appointment is something that time brings.
type appointment struct {
	due time.Time // virtual
	do  func()
}

// after makes something happen in virtual time: with the first request, ledger or move of the clock from then on. The caller
// holds mu.
func (w *world) after(d time.Duration, do func()) {
	w.agenda = append(w.agenda, appointment{w.now().Add(d), do})
}

// pass lets happen what is due, earliest first. The caller holds mu.
func (w *world) pass() {
	w.payShort()
	if len(w.agenda) == 0 {
		return
	}
	now := w.now()
	slices.SortStableFunc(w.agenda, func(a, b appointment) int { return a.due.Compare(b.due) })
	for len(w.agenda) > 0 && !w.agenda[0].due.After(now) {
		next := w.agenda[0]
		w.agenda = w.agenda[1:]
		next.do()
	}
}

// Now returns the virtual time.
func (s *Simulator) Now() time.Time {
	w := s.world.Load()
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now()
}

func (w *world) now() time.Time {
	if !w.standing.IsZero() {
		return w.standing
	}
	return time.Now().Add(w.offset)
}

// pause waits for d of wall-clock time. It reports false if the simulator ended first.
func (w *world) pause(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-w.done.Done():
		return false
	}
}

// gone waits until the client has left, for at most d. It reports false if the simulator ended first.
func (w *world) gone(client context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-client.Done():
		return w.done.Err() == nil
	case <-timer.C:
		return true
	case <-w.done.Done():
		return false
	}
}
