package stripesim

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Fault is something to go wrong with requests that match. Its JSON is the control surface's.
type Fault struct {
	ID string `json:"id,omitempty"` // given when added
	// Operation matches the journal's name for the request: exactly, or with * for any run of characters. "" matches all.
	Operation string `json:"operation"`
	// KeyMatch matches the idempotency key: a substring, or with * a pattern for the whole key. "" matches all, keyless too.
	KeyMatch string `json:"key_match"`
	// Nth is the matching request that is hit first, counted from 1 since the fault was added. 0 is the next one.
	Nth int `json:"nth"`
	// Times is how many matching requests are hit, from the nth on. 0 means 1; -1 means all until the fault is removed.
	Times int `json:"times"`
	// Fault is the name of what goes wrong.
	Fault string `json:"fault"`
	// DelayMS is wall-clock time. slow: executes no earlier than this after arrival. delay: time before executing. hang_after: the
	// answer is sent then after all. partial_500: rolls forward then. refuse: how long the address is shut. search_lag: how far
	// behind the index is, by default an hour. Others: the failure shows this much later.
	DelayMS int `json:"delay_ms"`
	// ShouldRetry sets the Stripe-Should-Retry header of the answer.
	ShouldRetry *bool `json:"should_retry,omitempty"`
	// CloseListenerMS shuts the address to new connections for a while, from the moment the fault shows.
	CloseListenerMS int `json:"close_listener_ms"`
	// Body picks the kind of bad_body: invalid (default), empty, truncated, no_error.
	Body string `json:"body,omitempty"`
}

// armedFault is a fault with its counters. Guarded by world.mu.
type armedFault struct {
	Fault
	seen  int
	fired int
}

// AddFault arms a fault and returns its id. It panics on a fault that CheckFault refuses.
func (s *Simulator) AddFault(f Fault) string {
	if err := s.CheckFault(f); err != nil {
		panic("stripesim: " + err.Error())
	}
	if f.ID == "" {
		f.ID = newID("fault_", 12)
	}
	if f.Times == 0 {
		f.Times = 1
	}
	if f.Fault == faultRefuse && f.matchesAll() && s.closeListener != nil {
		s.closeListener(f.listenerGap()) // nothing to wait for: shut now
		return f.ID
	}
	w := s.world.Load()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.armed = append(w.armed, &armedFault{Fault: f})
	return f.ID
}

// CheckFault says what is wrong with a fault's description, if anything.
func (s *Simulator) CheckFault(f Fault) error {
	spec, known := s.faults[f.Fault]
	if !known {
		return fmt.Errorf("there is no fault %q; there are %s", f.Fault, strings.Join(slices.Sorted(maps.Keys(s.faults)), ", "))
	}
	if !slices.ContainsFunc(s.routes, func(r route) bool { return f.canHit(&r, spec) }) {
		return fmt.Errorf("fault %s can hit no operation %q; there are %s", f.Fault, f.Operation, s.operations())
	}
	if f.Nth < 0 || f.Times < -1 || f.DelayMS < 0 || f.CloseListenerMS < 0 {
		return fmt.Errorf("nth, times, delay_ms and close_listener_ms are not negative (times may be -1)")
	}
	if !slices.Contains([]string{"", "invalid", "empty", "truncated", "no_error"}, f.Body) {
		return fmt.Errorf("body %q is none of invalid, empty, truncated, no_error", f.Body)
	}
	if f.Body != "" && f.Fault != "bad_body" {
		return fmt.Errorf("body belongs to bad_body, not to %s", f.Fault)
	}
	return nil
}

// canHit tells whether there is a request to an operation that the fault can hit: one that can hit none would test nothing.
func (f Fault) canHit(r *route, spec faultSpec) bool {
	if f.Operation != "" && !glob(f.Operation, r.operation) {
		return false
	}
	return spec.only == nil || spec.only(&call{route: r, method: r.method, reused: true})
}

// Faults returns the faults that may still fire.
func (s *Simulator) Faults() []Fault {
	w := s.world.Load()
	w.mu.Lock()
	defer w.mu.Unlock()
	faults := []Fault{}
	for _, armed := range w.armed {
		faults = append(faults, armed.Fault)
	}
	return faults
}

// RemoveFault disarms one fault and reports whether it was armed.
func (s *Simulator) RemoveFault(id string) bool {
	w := s.world.Load()
	w.mu.Lock()
	defer w.mu.Unlock()
	before := len(w.armed)
	w.armed = slices.DeleteFunc(w.armed, func(f *armedFault) bool { return f.ID == id })
	return len(w.armed) < before
}

// ClearFaults disarms all faults. Requests that are held back stay so.
func (s *Simulator) ClearFaults() {
	w := s.world.Load()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.armed = nil
}

// fire picks the fault for a request. Every armed fault that matches counts the request; the first whose turn has come hits it.
func (w *world) fire(c *call, specs map[string]faultSpec) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c.spec = faultSpec{executes: true}
	for _, armed := range w.armed {
		spec := specs[armed.Fault.Fault]
		if !armed.matches(c, spec) {
			continue
		}
		armed.seen++
		if c.fault == nil && armed.seen >= armed.Nth {
			armed.fired++
			fault := armed.Fault
			c.fault, c.spec = &fault, spec
			c.entry.Fault = fault.Fault
		}
	}
	w.armed = slices.DeleteFunc(w.armed, func(f *armedFault) bool { return f.Times > 0 && f.fired >= f.Times })
}

// unfire takes back a fault that turned out not to apply.
func (w *world) unfire(c *call) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c.fault, c.spec, c.entry.Fault = nil, faultSpec{executes: true}, ""
}

func (f *armedFault) matches(c *call, spec faultSpec) bool {
	if f.Operation != "" && !glob(f.Operation, c.operation()) {
		return false
	}
	if strings.Contains(f.KeyMatch, "*") {
		if !glob(f.KeyMatch, c.key) {
			return false
		}
	} else if !strings.Contains(c.key, f.KeyMatch) {
		return false
	}
	return spec.only == nil || spec.only(c)
}

func (f Fault) matchesAll() bool {
	return (f.Operation == "" || f.Operation == "*") && (f.KeyMatch == "" || f.KeyMatch == "*") && f.Nth == 0
}

// listenerGap is how long the fault shuts the address.
func (f Fault) listenerGap() time.Duration {
	ms := f.CloseListenerMS
	if f.Fault == faultRefuse && ms == 0 {
		ms = orDefault(f.DelayMS, 1000)
	}
	return time.Duration(ms) * time.Millisecond
}

// glob matches with * for any run of characters.
func glob(pattern, text string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == text
	}
	text, ok := strings.CutPrefix(text, parts[0])
	if !ok {
		return false
	}
	for _, part := range parts[1 : len(parts)-1] {
		_, rest, found := strings.Cut(text, part)
		if !found {
			return false
		}
		text = rest
	}
	return strings.HasSuffix(text, parts[len(parts)-1])
}
