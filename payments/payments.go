package payments

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"holdfast/domain"
)

// Waker is told, after a commit, that there is work of a kind; it must not block.
type Waker interface {
	Wake(kind domain.EffectKind)
}

// Config sets the protocol's bounds. Zero values take the defaults.
type Config struct {
	// Horizon is how long after its first send a provider key may be sent again, by the database's clock. It is
	// shorter than the provider's own memory of keys (24 h): beyond that a re-send would execute as new. Default 20 h.
	Horizon time.Duration
	// MaxSends is how many sends a worker makes for an effect before it hands it to the reconciler. Default 6.
	MaxSends int
	// Backoff is the wait after the first send; it doubles with each, up to a minute. Default 1 s: with six sends the
	// worker gives up after half a minute, long before the hold ends.
	Backoff time.Duration
	// Poll is how often what only waits is read again: processing, a customer who must authenticate. Default 15 s.
	Poll time.Duration
	// Lease is how long one reconciler keeps a doubt to itself; longer than a read and a send together. Default 2 min.
	Lease time.Duration
	// Watch is how long after its end a booking's intent is still read now and then. Default 48 h.
	Watch time.Duration
	// EventInterval is the pause between two looks for events that were delivered. Default 250 ms.
	EventInterval time.Duration
	// EventKeep is how long an event is kept whose booking is not here, or that the provider does not bear out, before a
	// person has to look at it. Default 72 h, for which the provider itself would deliver it again.
	EventKeep time.Duration
	// SweepInterval is the pause between two sweeps of the provider's list of events. Default 5 min.
	SweepInterval time.Duration
	// SweepLag is how long ago a window of that list must have ended to be read. Default 1 min.
	SweepLag time.Duration
	// SweepOverlap is how much of the window before is read again: an event may become visible late. Default 10 min.
	SweepOverlap time.Duration
	// IngestLag is how long ago a window of the provider's transactions must have ended to be read, and how long a charge may
	// be without one before it is asked for. Default 5 min.
	IngestLag time.Duration
	// IngestOverlap is how much of the window before is read again: a transaction may become visible late. Default 1 h.
	IngestOverlap time.Duration
	// IngestInterval is the pause between two readings of transactions, and between two questions for one that is missing.
	// Default 1 min.
	IngestInterval time.Duration
	// Page is asked before each page of the provider's transactions is read, and may wait: paging must leave the provider's limits to
	// charges and fences. Default: it does not wait.
	Page func(context.Context) error
	// Meter counts what becomes of events. Default: one that nobody reads.
	Meter *Meter
	// Sends counts the sends that were made ([NewSendCounter]). Default: one that nobody sees.
	Sends *prometheus.CounterVec
	// KeyRetention is how long after a send the provider may still carry it out: only later does a refund that it does not
	// list take its next key. Default 24 h.
	KeyRetention time.Duration
	// RefundWatch is how long after a refund has succeeded it is still looked at, at growing intervals. Default 30 days, in which
	// the provider may say that it has failed after all.
	RefundWatch time.Duration
	// LateRefunds is how many refunds of a late success are begun in an hour without a person; those above it are parked.
	// Late successes are rare: many at once are a fault that somebody should look at first. Default 20.
	LateRefunds int
}

// Payments runs the charge protocol.
type Payments struct {
	pool    *pgxpool.Pool
	gateway Gateway
	waker   Waker
	config  Config
	meter   *Meter
	logger  *slog.Logger

	sweepSetUp atomic.Bool // the row of the sweep is there
}

// New makes the protocol's engine.
func New(pool *pgxpool.Pool, gateway Gateway, waker Waker, config Config, logger *slog.Logger) *Payments {
	setDefault(&config.Horizon, 20*time.Hour)
	setDefault(&config.MaxSends, 6)
	setDefault(&config.Backoff, time.Second)
	setDefault(&config.Poll, 15*time.Second)
	setDefault(&config.Lease, 2*time.Minute)
	setDefault(&config.Watch, 48*time.Hour)
	setDefault(&config.KeyRetention, 24*time.Hour)
	setDefault(&config.RefundWatch, 30*24*time.Hour)
	setDefault(&config.LateRefunds, 20)
	setDefault(&config.EventInterval, 250*time.Millisecond)
	setDefault(&config.EventKeep, 72*time.Hour)
	setDefault(&config.SweepInterval, 5*time.Minute)
	setDefault(&config.SweepLag, time.Minute)
	setDefault(&config.SweepOverlap, 10*time.Minute)
	setDefault(&config.IngestLag, 5*time.Minute)
	setDefault(&config.IngestOverlap, time.Hour)
	setDefault(&config.IngestInterval, time.Minute)
	if config.Page == nil {
		config.Page = func(context.Context) error { return nil }
	}
	if config.Sends == nil {
		config.Sends = NewSendCounter()
	}
	return &Payments{pool: pool, gateway: gateway, waker: waker, config: config, meter: config.Meter.orNew(), logger: logger}
}

func setDefault[T int | time.Duration](v *T, d T) {
	if *v <= 0 {
		*v = d
	}
}

// backoff is the wait after the n-th send.
func (p *Payments) backoff(n int) time.Duration {
	return min(p.config.Backoff<<min(max(n-1, 0), 16), time.Minute)
}
