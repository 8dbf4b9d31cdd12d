package stripesim

import (
	"context"
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
		close(w.advanced)
		w.advanced = make(chan struct{})
		w.rollForward()
		w.pass()
	}
	return w.now()
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

func (w *world) now() time.Time { return time.Now().Add(w.offset) }

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
