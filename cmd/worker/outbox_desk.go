package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/jackc/pgx/v5/pgxpool"

	"holdfast/domain"
	"holdfast/internal/cli"
	"holdfast/internal/operator"
	"holdfast/internal/postgres"
	"holdfast/internal/telemetry"
	"holdfast/outbox"
	"holdfast/payments"
	"holdfast/payments/stripe"
)

// desk is how an operator's command gets at the desk. The zero value of what is not configured means: not to be had here.
type desk struct {
	Database   cli.Database   `kong:"-"`
	Account    cli.Account    `kong:"-"` // STRIPE_API_KEY may be missing: the provider is not asked then
	Broker     broker         `kong:"-"` // NATS_URL may be missing: nothing is sent then
	TwoPersons cli.TwoPersons `kong:"-"`
	Liveness   cli.Liveness   `embed:"" group:"settings"`

	sending cli.Sending // of the acts that need it
}

func (d *desk) configure(getenv func(string) string, p *cli.Problems) {
	d.Database.Configure(getenv, p)
	d.Account.Configure(getenv, p)
	d.Broker.URL = domain.Secret(getenv("NATS_URL"))
	d.TwoPersons.Configure(getenv, p)
	d.Liveness.Configure(getenv, p)
}

// actingDesk is the desk of a command that acts on money.
type actingDesk struct {
	desk

	Sending cli.Sending `embed:"" group:"settings"`
}

func (d *actingDesk) configure(getenv func(string) string, p *cli.Problems) {
	d.desk.configure(getenv, p)
	d.Sending.Configure(getenv, p)
	d.sending = d.Sending
}

// at runs an operator's work at the desk, and tells a refusal from not having been able to tell.
func (d *desk) at(ctx context.Context, io cli.IO, work func(ctx context.Context, desk *operator.Desk) error) error {
	return once(ctx, d.Database, func(ctx context.Context, pool *pgxpool.Pool) error {
		logger := telemetry.NewLogger(io.Err, slog.LevelWarn, "worker")
		waker := outbox.NewWaker(pool, logger)
		defer waker.Close()
		money, err := d.money(pool, waker, logger)
		if err != nil {
			return err
		}
		publisher, disconnect, err := d.publisher(logger)
		if err != nil {
			return err
		}
		defer disconnect()
		return work(ctx, operator.New(pool, nil, money, publisher, operator.Config{
			DeadAfter: d.Liveness.WorkerDeadAfter, SecondPerson: d.TwoPersons.Above, RequestLife: d.TwoPersons.RequestLife,
		}, logger))
	})
}

// money reads the provider, or is nil where there is no key for it.
func (d *desk) money(pool *pgxpool.Pool, waker payments.Waker, logger *slog.Logger) (*payments.Payments, error) {
	if d.Account.APIKey == "" {
		return nil, nil //nolint:nilnil // no key, nobody to ask
	}
	gateway, err := stripe.New(stripe.Config{APIKey: d.Account.APIKey, BaseURL: d.Account.APIBase})
	if err != nil {
		return nil, &cli.ExitError{Code: cli.ExitUsage, Err: err}
	}
	return payments.New(pool, gateway, waker, payments.Config{
		Horizon: d.sending.ProviderKeyHorizon, KeyRetention: d.sending.ProviderKeyRetention, Backoff: d.sending.SendBackoff,
	}, logger), nil
}

// publisher sends events, or is nil where no broker is known. It connects while the command goes on.
func (d *desk) publisher(logger *slog.Logger) (outbox.Publisher, func(), error) {
	if d.Broker.URL == "" {
		return nil, func() {}, nil
	}
	conn, err := outbox.Connect(d.Broker.URL.Reveal(), "holdfast-worker-command", logger)
	if err != nil {
		return nil, nil, &cli.ExitError{Code: cli.ExitUsage, Err: err}
	}
	stream, err := outbox.NewJetStream(conn, outbox.StreamConfig{}, logger)
	if err != nil {
		conn.Close()
		return nil, nil, err
	}
	return stream, conn.Close, nil
}

// once runs an operator's work on a small pool.
func once(ctx context.Context, d cli.Database, work func(ctx context.Context, pool *pgxpool.Pool) error) error {
	pool, err := d.Open(ctx, "holdfast-worker-command")
	if err != nil {
		return err
	}
	defer pool.Close()
	err = work(ctx, pool)
	var refused *outbox.RefusedError
	var exit *cli.ExitError
	var lost *postgres.CommitError
	switch {
	case err == nil, errors.As(err, &refused), errors.As(err, &exit):
		return err
	case errors.Is(err, domain.ErrNotFound):
		return &cli.ExitError{Code: cli.ExitUsage, Err: errors.New("there is nothing of this id; see worker outbox: list, list --booking ID, runs, requests")}
	case errors.Is(err, outbox.ErrCursor):
		return &cli.ExitError{Code: cli.ExitUsage, Err: fmt.Errorf("--after: %w", err)}
	case errors.Is(err, payments.ErrUnread):
		return &cli.ExitError{Code: cli.ExitUnknown, Err: fmt.Errorf("%w; nothing was changed", err)}
	case errors.Is(err, operator.ErrBroker):
		return &cli.ExitError{Code: cli.ExitUnknown, Err: fmt.Errorf("%w; nothing was changed", err)}
	case errors.As(err, &lost):
		return &cli.ExitError{Code: cli.ExitUnknown, Err: fmt.Errorf("%w; see whether it was done: worker outbox show", err)}
	}
	if err = d.Explain(err); errors.As(err, &exit) {
		return err
	}
	return &cli.ExitError{Code: cli.ExitUnknown, Err: err}
}
