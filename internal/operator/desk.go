package operator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"holdfast/domain"
	"holdfast/internal/bookings"
	"holdfast/internal/postgres"
	"holdfast/outbox"
	"holdfast/payments"
)

// Config sets up a desk. Zero values take the defaults.
type Config struct {
	DeadAfter    time.Duration    // a process not seen for so long carries no live job; default 15 s
	SecondPerson map[string]int64 // by currency, minor units: an act that lets more money move needs a second person; default: none does
	RequestLife  time.Duration    // how long an act waits for its second person; default 24 h
}

// Desk is where operators see and act.
type Desk struct {
	pool      *pgxpool.Pool
	keys      *bookings.Service
	money     *payments.Payments
	publisher outbox.Publisher
	config    Config
	logger    *slog.Logger
}

// New makes a desk. keys decides keyed requests once (nil: DoOnce is not called); money reads the provider, and is nil where
// the process has no key for it: previews then say so, and what needs a reading is refused. publisher is nil where the
// process has no broker: republish is then refused.
func New(
	pool *pgxpool.Pool, keys *bookings.Service, money *payments.Payments, publisher outbox.Publisher, config Config, logger *slog.Logger,
) *Desk {
	config.DeadAfter = cmp.Or(config.DeadAfter, outbox.DeadAfter)
	config.RequestLife = cmp.Or(config.RequestLife, 24*time.Hour)
	return &Desk{pool: pool, keys: keys, money: money, publisher: publisher, config: config, logger: logger}
}

// asOfOneMoment runs read on one snapshot.
func (d *Desk) asOfOneMoment(ctx context.Context, read func(tx pgx.Tx) error) error {
	return busy(pgx.BeginTxFunc(ctx, d.pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, read))
}

// busy keeps "the database could not take it for now" apart from "something is wrong with us". A commit of which nobody knows stays
// what it is.
func busy(err error) error {
	var unknown *postgres.CommitError
	if err == nil || errors.As(err, &unknown) || errors.Is(err, domain.ErrBusy) {
		return err
	}
	if postgres.IsTransient(err) || postgres.IsUnavailable(err) {
		return fmt.Errorf("%w: %w", domain.ErrBusy, err)
	}
	return err
}
