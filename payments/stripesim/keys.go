package stripesim

import (
	"fmt"
	"net/http"
	"time"
)

// keyScope is where an idempotency key means something: the account, over all its endpoints.
type keyScope struct{ account, key string }

// keyRecord is what a key remembers. Without an answer its first request is still in flight; without a record the key is free.
type keyRecord struct {
	since       time.Time // virtual: the first request's arrival
	requestID   string    // of that request
	fingerprint string
	done        bool
	status      int
	body        []byte
}

// claim gives the key to this request, or answers in its place: a replay, a mismatch, or still in flight. A request without a key
// gets no record and no answer.
func (w *world) claim(c *call) (*keyRecord, *answer) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if c.key == "" {
		return nil, nil
	}
	fingerprint := c.method + " " + c.path + " " + c.params.digest()
	record, known := w.keys[w.scope(c)]
	var reply answer
	switch {
	case !known, w.forgotten(record):
		record = &keyRecord{since: w.now(), requestID: c.requestID, fingerprint: fingerprint}
		w.keys[w.scope(c)] = record
		return record, nil
	case record.fingerprint != fingerprint:
		reply = c.fail(failure(http.StatusBadRequest, typeIdempotency, "",
			fmt.Sprintf("The idempotency key %q was used before with other parameters or at another endpoint.", c.key)))
	case !record.done:
		reply = c.fail(keyInUse())
	default:
		c.entry.Replayed = true
		reply = answer{
			status: record.status, body: record.body, replayed: true, original: record.requestID, shouldRetry: "false",
		}
	}
	return nil, &reply
}

func (w *world) scope(c *call) keyScope { return keyScope{w.cfg.Account, c.key} }

// complete stores the answer for the life of the key. The caller holds mu.
func (w *world) complete(record *keyRecord, a answer) {
	if record != nil {
		record.done, record.status, record.body = true, a.status, a.body
	}
}

// forget frees a key whose request did not begin to execute. The caller holds mu.
func (w *world) forget(c *call, record *keyRecord) {
	if record != nil && w.keys[w.scope(c)] == record {
		delete(w.keys, w.scope(c))
	}
}

func (w *world) release(c *call, record *keyRecord) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.forget(c, record)
}

// forgotten says that a key is older than the retention: it leaves no trace and executes as new. A request in flight keeps its key
// however long it takes.
func (w *world) forgotten(record *keyRecord) bool {
	return record.done && w.now().Sub(record.since) >= w.cfg.KeyRetention
}
