package finance

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"holdfast/payments"
)

// Provider is what finance reads of the provider's. An error means that a listing is incomplete.
type Provider interface {
	payments.Accountant
	// Payout reads one payout.
	Payout(ctx context.Context, id string) (payments.Payout, error)
	// EachPayoutTransaction hands on what went out with an automatic payout, page by page, without the payout itself.
	EachPayoutTransaction(ctx context.Context, id string, each func([]payments.Transaction) error) error
}

// Config sets the desk's bounds. Zero values take the defaults.
type Config struct {
	// Lag is how long ago a window must have ended to be read, and how long one side may be without the other. Default 5 min.
	Lag time.Duration
	// LateAfter is how long what is missing is only late. Default 72 h.
	LateAfter time.Duration
	// ReadsPerSecond is how many pages all processes together read from the provider in a second; it is meant to leave most of
	// what the provider allows to charges and fences. Default 20.
	ReadsPerSecond float64
	// Stride is how many rows of either side are matched in one transaction, where they are of more than a day. Default 50,000.
	Stride int
	// Fresh is how old a comparison may be for a report to be made of it. Default 0: every report compares anew.
	Fresh time.Duration
	// Wait is how long a run waits for another one that is matching. Default 30 s.
	Wait time.Duration
	// Retry is how long a payout that could not be read, or that may still fail, is left alone. Default 1 h.
	Retry time.Duration
	// Every is how long after a comparison of the last days [Desk.Watch] makes the next. Default 15 min.
	Every time.Duration
	// Stream is compared with what was published, at every report. Default: none, and the report says so.
	Stream Stream
	// Progress is told how far a long run is. Default: nobody.
	Progress func(Progress)
}

// Progress is how far a run is.
type Progress struct {
	Stage string // read, import, match
	Rows  int64
	Pages int64
	Done  float64       // from 0 to 1
	Taken time.Duration // so far
}

// Rate is rows per second.
func (p Progress) Rate() float64 { return float64(p.Rows) / max(p.Taken.Seconds(), 0.001) }

// Left is how long the rest will take at the rate so far; 0: unknown.
func (p Progress) Left() time.Duration {
	if p.Done <= 0 {
		return 0
	}
	return time.Duration(float64(p.Taken) * (1 - p.Done) / p.Done).Round(time.Second)
}

// Desk is the finance desk.
type Desk struct {
	pool     *pgxpool.Pool
	budget   *Budget
	provider Provider // nil: only what is stored and what is imported
	config   Config
	logger   *slog.Logger
}

// New makes a desk. Without provider it reads nothing but files.
func New(pool *pgxpool.Pool, provider Provider, config Config, logger *slog.Logger) *Desk {
	setDefault(&config.Lag, 5*time.Minute)
	setDefault(&config.LateAfter, 72*time.Hour)
	setDefault(&config.ReadsPerSecond, 20)
	setDefault(&config.Wait, 30*time.Second)
	setDefault(&config.Retry, time.Hour)
	setDefault(&config.Every, 15*time.Minute)
	setDefault(&config.Stride, 50_000)
	if config.Progress == nil {
		config.Progress = func(Progress) {}
	}
	return &Desk{pool: pool, budget: NewBudget(pool, config.ReadsPerSecond), provider: provider, config: config, logger: logger}
}

func setDefault[T time.Duration | float64 | int](v *T, d T) {
	if *v <= 0 {
		*v = d
	}
}

// ErrIncomplete says that not all of a window could be read, so that nothing can be told of what is missing.
var ErrIncomplete = errors.New("the provider's books could not be read whole")
