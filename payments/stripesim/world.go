package stripesim

import (
	"context"
	"crypto/rand"
	"net/http"
	"sync"
	"time"
)

// world is everything that Reset empties. A request keeps the world it arrived in, so one that is still held back after a reset
// executes into a world nobody reads.
//
// mu guards every field and every object reachable from them, for moments only: nobody waits for a client, a clock or an object
// lock while holding it.
type world struct {
	cfg  Config
	done context.Context // ends with Reset and with Close
	end  context.CancelFunc

	mu       sync.Mutex
	offset   time.Duration // virtual clock minus wall clock
	standing time.Time     // the virtual time while its clock stands; zero: it goes
	sequence int64         // order of birth, over all objects

	keys       map[keyScope]*keyRecord
	executions []Execution
	locks      map[string]chan struct{} // one token per intent

	customers []*customer
	intents   []*intent
	charges   []*charge
	refunds   []*refund
	disputes  []*dispute
	events    []*event
	// versions are what the search index is told, in order.
	versions []version
	methods  map[string]*method
	byID     map[string]*intent
	agenda   []appointment

	settlement   Settlement
	transactions []*transaction
	balance      map[string]int64 // by currency: what all movements come to
	payouts      []*payout
	reports      []*report
	files        []*file
	short        []*refund // waiting for money to be available, oldest first

	armed   []*armedFault
	journal []*JournalEntry

	webhooks   Webhooks
	held       []*event
	deliveries []*Delivery
	advanced   chan struct{} // closed, and replaced, when the virtual clock moves
	slots      chan struct{} // one for each delivery under way
	hooks      *http.Client
	background func(func(ctx context.Context)) // ctx is done
}

func (s *Simulator) newWorld() *world {
	w := &world{
		cfg:     s.cfg,
		keys:    map[keyScope]*keyRecord{},
		locks:   map[string]chan struct{}{},
		methods: map[string]*method{},
		byID:    map[string]*intent{},
		balance: map[string]int64{},
		webhooks: Webhooks{
			Mode: modeAuto, URL: s.cfg.WebhookURL, Secret: s.cfg.WebhookSecret,
		},
		advanced: make(chan struct{}),
		slots:    make(chan struct{}, deliveriesAtOnce),
		hooks:    s.hooks,
	}
	w.settlement = DefaultSettlement()
	if s.cfg.Settlement != nil {
		w.settlement = *s.cfg.Settlement
	}
	w.done, w.end = context.WithCancel(s.done)
	w.background = func(f func(context.Context)) { s.background(func() { f(w.done) }) }
	return w
}

// birth numbers and dates a new object.
func (w *world) birth() (order, created int64) {
	w.sequence++
	return w.sequence, w.now().Unix()
}

// newID makes an identifier in Stripe's manner: prefix, then n characters nobody can guess.
func newID(prefix string, n int) string {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
	random := make([]byte, n)
	_, _ = rand.Read(random) // never fails: crypto/rand ends the process instead
	for i, b := range random {
		random[i] = alphabet[int(b)%len(alphabet)]
	}
	return prefix + string(random)
}

// object is a JSON object in the making.
type object map[string]any

// null renders the empty string as null, as Stripe does for what is not set.
func null(s string) any {
	if s == "" {
		return nil
	}
	return s
}
