package stripesim

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// APIVersion is the Stripe API version whose shapes the simulator answers in, whatever version a client asks for.
const APIVersion = "2023-10-16"

// Config configures a Simulator. The zero value is usable.
type Config struct {
	// Account is the id that GET /v1/account answers and that scopes idempotency keys. Default "acct_1SimulatorAccount".
	Account string
	// KeyRetention is how long an idempotency key is remembered, on the virtual clock. Default 24h, the least Stripe promises.
	KeyRetention time.Duration
	// LockWait is how long a write waits for an intent that another write holds before it ends with 429 lock_timeout.
	// Default 500ms.
	LockWait time.Duration
	// HangFor bounds how long hang_after holds an answer back when its client never leaves; then the answer is sent. Default 10m.
	HangFor time.Duration
	// SlowFor bounds how long slow waits for its client to leave; then it executes and answers. Default 10m.
	SlowFor time.Duration
	// SearchLag is how far the search index is behind, on the virtual clock. Default 1m, the most that Stripe calls normal.
	SearchLag time.Duration
	// Settlement is what becomes of money that was charged, until SetSettlement and again from a reset on. Default
	// DefaultSettlement.
	Settlement *Settlement
	// WebhookURL is where events are delivered, and WebhookSecret what deliveries are signed with. Default: nowhere.
	WebhookURL    string
	WebhookSecret string
	// WebhookBackoff is the pause after the first delivery that is not taken, on the virtual clock; each is four times as long
	// as the one before, up to eight tries. Default 1s.
	WebhookBackoff time.Duration
	// Observe, when set, is called once per API request on arrival, before anything is decided. It may block the request.
	Observe func(JournalEntry)
	// OpenControl lets clients beyond loopback use the control surface.
	OpenControl bool
	// Logger gets one debug line per request. Default: none.
	Logger *slog.Logger
}

// Simulator is the simulated provider. It is an [http.Handler], safe for concurrent use.
type Simulator struct {
	cfg    Config
	log    *slog.Logger
	routes []route
	faults map[string]faultSpec
	world  atomic.Pointer[world]
	done   context.Context // ends with Close
	close  context.CancelFunc
	conns  *connections
	hooks  *http.Client // delivers webhooks

	deliverMu  sync.Mutex // nothing begins once Close has
	delivering sync.WaitGroup

	// closeListener makes the address refuse connections for a while. The Server that owns a listener sets it; nil behind any other.
	closeListener func(time.Duration)
}

// New returns an empty simulator. Close it to end the requests it holds back.
func New(cfg Config) *Simulator {
	cfg.Account = orDefault(cfg.Account, "acct_1SimulatorAccount")
	cfg.KeyRetention = orDefault(cfg.KeyRetention, 24*time.Hour)
	cfg.LockWait = orDefault(cfg.LockWait, 500*time.Millisecond)
	cfg.HangFor = orDefault(cfg.HangFor, 10*time.Minute)
	cfg.SlowFor = orDefault(cfg.SlowFor, 10*time.Minute)
	cfg.SearchLag = orDefault(cfg.SearchLag, time.Minute)
	cfg.WebhookBackoff = orDefault(cfg.WebhookBackoff, time.Second)
	cfg.Logger = orDefault(cfg.Logger, slog.New(slog.DiscardHandler))
	s := &Simulator{cfg: cfg, log: cfg.Logger, faults: faultSpecs(), conns: newConnections(), hooks: newHooks()}
	s.routes = s.apiRoutes()
	s.done, s.close = context.WithCancel(context.Background())
	s.world.Store(s.newWorld())
	return s
}

// Close ends every request that a fault holds back: what has not executed never will, what has executed loses its answer.
// Webhooks are delivered no more.
// An HTTP server in front of the simulator can be shut down afterwards without waiting.
func (s *Simulator) Close() {
	s.deliverMu.Lock()
	s.close()
	s.deliverMu.Unlock()
	s.delivering.Wait()
	s.hooks.CloseIdleConnections()
}

// background runs f beside everything else; Close waits for it.
func (s *Simulator) background(f func()) {
	s.deliverMu.Lock()
	defer s.deliverMu.Unlock()
	if s.done.Err() == nil {
		s.delivering.Go(f)
	}
}

// Reset empties everything: objects, keys, faults, journal and clock. Requests held back end as with Close.
func (s *Simulator) Reset() {
	old := s.world.Swap(s.newWorld())
	old.end()
}

func orDefault[T comparable](value, fallback T) T {
	var zero T
	if value == zero {
		return fallback
	}
	return value
}
