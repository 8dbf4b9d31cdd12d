package stripesim

import "time"

// JournalEntry is one request to the API, in order of arrival. Control requests are not in the journal.
type JournalEntry struct {
	Seq            int64  `json:"seq"`
	Operation      string `json:"operation"` // payment_intents.confirm, …; "unknown" for a URL that is not modelled
	Method         string `json:"method"`
	Path           string `json:"path"`
	Object         string `json:"object"` // the identifier in the path, or of what was created
	IdempotencyKey string `json:"idempotency_key"`
	// ParamsSHA256 identifies the parsed parameters: equal for equal meaning, whatever their order.
	ParamsSHA256 string `json:"params_sha256"`
	// Executed says that the operation ran, declines and refusals by an object's state included. A replay did not run, nor did a
	// request refused for its parameters, its key or its API key.
	Executed bool `json:"executed"`
	// Replayed says that the answer came from the key's memory.
	Replayed bool `json:"replayed"`
	// Status is what was sent; 0 if nothing was.
	Status int    `json:"status"`
	Fault  string `json:"fault"` // the fault that was applied, if any
	// Open says that the request is still being worked on, or its answer held back.
	Open      bool      `json:"open"`
	RequestID string    `json:"request_id"`
	Arrived   time.Time `json:"arrived"` // virtual
}

// Journal returns the requests after the given sequence number, 0 for all. An open entry changes later, under the same number.
func (s *Simulator) Journal(after int64) []JournalEntry {
	w := s.world.Load()
	w.mu.Lock()
	defer w.mu.Unlock()
	entries := []JournalEntry{}
	for _, entry := range w.journal[min(max(after, 0), int64(len(w.journal))):] {
		entries = append(entries, *entry)
	}
	return entries
}

func (w *world) open(c *call) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c.entry = &JournalEntry{
		Seq:            int64(len(w.journal)) + 1,
		Operation:      c.operation(),
		Method:         c.method,
		Path:           c.path,
		Object:         c.id,
		IdempotencyKey: c.key,
		ParamsSHA256:   c.params.digest(),
		Open:           true,
		RequestID:      c.requestID,
		Arrived:        w.now(),
	}
	w.journal = append(w.journal, c.entry)
}

func (w *world) snapshot(c *call) JournalEntry {
	w.mu.Lock()
	defer w.mu.Unlock()
	return *c.entry
}

// closeEntry says what is about to be sent.
func (w *world) closeEntry(c *call, a answer) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c.entry.Open = false
	if a.wire != wireReset {
		c.entry.Status = a.status
	}
}
