package stripesim

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// ServeHTTP answers Stripe's API, and the control surface under /_sim/.
func (s *Simulator) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.URL.Path+"/", "/_sim/") {
		s.serveControl(rw, r)
		return
	}
	w := s.world.Load()
	c := s.receive(r)
	w.open(c)
	if s.cfg.Observe != nil {
		s.cfg.Observe(w.snapshot(c))
	}
	s.deliver(rw, r, w, c, s.process(r.Context(), w, c))
}

// process decides what a request is answered. The order is Stripe's: authentication, then what may refuse a request before it is
// looked at, then its parameters, then its key, and only then the execution.
func (s *Simulator) process(client context.Context, w *world, c *call) answer {
	if err := c.authenticate(); err != nil {
		return c.fail(err)
	}
	if c.route == nil {
		err := invalid("", "", "There is no such URL here (%s %s). This simulator has %s.", c.method, c.path, s.operations())
		err.status = http.StatusNotFound
		return c.fail(err)
	}
	w.fire(c, s.faults)
	if !c.spec.executes && (!c.spec.stored || !c.writes()) {
		return c.disturb(answer{})
	}
	if c.malformed != nil {
		return c.disturb(c.fail(c.malformed))
	}
	if len(c.key) > maxKeyLength {
		return c.disturb(c.fail(invalid("", "", "An idempotency key has at most %d characters.", maxKeyLength)))
	}
	execute, err := c.route.prepare(c)
	if err != nil {
		return c.disturb(c.fail(err))
	}
	if c.writes() {
		return s.write(client, w, c, execute)
	}
	return s.read(client, w, c, execute)
}

func (s *Simulator) read(client context.Context, w *world, c *call, execute execution) answer {
	if !s.wait(client, w, c, waitGone) || !s.wait(client, w, c, waitHolding) {
		return answer{wire: wireReset}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pass()
	result, err := execute(w)
	c.entry.Executed = err == nil
	return c.disturb(c.answer(result, err))
}

// write executes under the key and the object's lock. Effect and stored answer become visible together, under one mutex: a stored
// answer without its effect, or the reverse, exists only where a fault asks for it.
func (s *Simulator) write(client context.Context, w *world, c *call, execute execution) answer {
	record, stored := w.claim(c)
	if stored != nil {
		if c.spec.stored || c.spec.waits != "" { // nothing executes that the fault could change
			w.unfire(c)
		}
		return c.disturb(*stored)
	}
	if !s.wait(client, w, c, waitGone) {
		w.release(c, record)
		return answer{wire: wireReset}
	}
	unlock, locked := w.lock(w.lockID(c), s.cfg.LockWait)
	if !locked {
		w.release(c, record)
		return c.disturb(c.fail(lockTimeout()))
	}
	defer unlock()
	if !s.wait(client, w, c, waitHolding) {
		w.release(c, record)
		return answer{wire: wireReset}
	}
	return w.execute(c, record, execute)
}

// lockID is the intent whose writes serialise with this one: refunds and disputes are its own. A create has none.
func (w *world) lockID(c *call) string {
	if !c.spec.executes {
		return "" // a stored failure touches nothing
	}
	about := orDefault(c.about, c.id)
	w.mu.Lock()
	defer w.mu.Unlock()
	if t := w.intentOf(about); t != nil {
		return t.id
	}
	return about
}

func (w *world) execute(c *call, record *keyRecord, execute execution) answer {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pass()
	var result answer
	if c.spec.executes {
		done, err := execute(w)
		if err != nil && err.status == http.StatusTooManyRequests {
			w.forget(c, record)
			return c.disturb(c.fail(err))
		}
		result = c.answer(done, err)
		c.entry.Executed = true
		w.recordExecution(c, record)
	}
	if c.spec.stored {
		result = c.disturb(result)
		w.complete(record, result)
		return keyed(c, result)
	}
	w.complete(record, result)
	return c.disturb(keyed(c, result))
}

// keyed adds what the first answer of a key says about itself. A 5xx keeps silent about retrying: Stripe does not know either.
func keyed(c *call, result answer) answer {
	if c.key != "" {
		result.original = c.requestID
		if result.status < http.StatusInternalServerError && result.shouldRetry == "" {
			result.shouldRetry = "false"
		}
	}
	return result
}

// wait holds the execution back where the fault asks for it, and reports false if the simulator ended meanwhile.
func (s *Simulator) wait(client context.Context, w *world, c *call, stage string) bool {
	if c.fault == nil || c.spec.waits != stage {
		return true
	}
	delay := time.Duration(c.fault.DelayMS) * time.Millisecond
	if stage == waitHolding {
		return w.pause(delay)
	}
	arrived := time.Now()
	return w.gone(client, s.cfg.SlowFor) && w.pause(max(0, delay-time.Since(arrived)))
}

// deliver sends an answer, or does to it what the fault says. The journal is complete before the first byte leaves.
func (s *Simulator) deliver(rw http.ResponseWriter, r *http.Request, w *world, c *call, a answer) {
	if c.fault != nil {
		if c.spec.waits == "" && c.spec.delays && c.fault.DelayMS > 0 {
			w.pause(time.Duration(c.fault.DelayMS) * time.Millisecond)
		}
		if d := c.fault.listenerGap(); d > 0 && s.closeListener != nil {
			s.closeListener(d) // first, so that whoever sees the reset finds the address shut
		}
	}
	if a.wire == wireHang {
		bound := s.cfg.HangFor
		if c.fault.DelayMS > 0 {
			bound = time.Duration(c.fault.DelayMS) * time.Millisecond
		}
		a.wire = wireSend
		if !w.gone(r.Context(), bound) || r.Context().Err() != nil {
			a.wire = wireReset
		}
	}
	if c.fault != nil && r.Context().Err() != nil {
		a.wire = wireReset // whom the fault has driven away is sent nothing, and the journal must not say otherwise
	}
	w.closeEntry(c, a)
	s.log.DebugContext(r.Context(), "request", "operation", c.operation(), "request_id", c.requestID, "status", a.status,
		"wire", a.wire)
	switch a.wire {
	case wireReset:
		s.conns.reset(rw, r)
	case wireTruncate:
		c.header(rw, a)
		_, _ = rw.Write(a.body[:len(a.body)/2])
		_ = http.NewResponseController(rw).Flush()
		s.conns.reset(rw, r)
	default:
		c.header(rw, a)
		_, _ = rw.Write(a.body) // a client that left has nothing to be told
	}
}

func (c *call) header(rw http.ResponseWriter, a answer) {
	h := rw.Header()
	h.Set("Content-Type", orDefault(a.contentType, "application/json"))
	h.Set("Content-Length", strconv.Itoa(len(a.body)))
	h.Set("Request-Id", c.requestID)
	h.Set("Stripe-Version", APIVersion)
	for name, value := range map[string]string{
		"Idempotency-Key": c.key, "Original-Request": a.original, "Stripe-Should-Retry": a.shouldRetry,
	} {
		if value != "" {
			h.Set(name, value)
		}
	}
	if a.replayed {
		h.Set("Idempotent-Replayed", "true")
	}
	if a.status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", `Bearer realm="Stripe"`)
	}
	rw.WriteHeader(a.status)
}
