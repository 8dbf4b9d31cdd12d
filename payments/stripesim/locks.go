package stripesim

import "time"

// lock takes the write lock of one object and returns what releases it. It reports false when another write held the object for
// longer than wait, or when the simulator ended.
//
// The lock is apart from mu because a write may hold its object for as long as a fault says, and meanwhile everything else runs.
func (w *world) lock(id string, wait time.Duration) (unlock func(), ok bool) {
	if id == "" {
		return func() {}, true
	}
	w.mu.Lock()
	token, known := w.locks[id]
	if !known {
		token = make(chan struct{}, 1)
		w.locks[id] = token
	}
	w.mu.Unlock()

	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case token <- struct{}{}:
		return func() { <-token }, true
	case <-timer.C:
		return nil, false
	case <-w.done.Done():
		return nil, false
	}
}
