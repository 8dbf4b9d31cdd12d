package main

import (
	"log/slog"

	"github.com/jackc/pgx/v5/pgxpool"

	"holdfast/domain"
	"holdfast/internal/bookings"
	"holdfast/internal/cli"
	"holdfast/internal/operator"
	"holdfast/outbox"
	"holdfast/payments"
	"holdfast/payments/stripe"
)

// desk is what the operators' desk needs beside what customers do.
type desk struct {
	Broker     domain.Secret  `kong:"-"` // NATS_URL; may hold credentials. Empty: no event is republished from here
	TwoPersons cli.TwoPersons `kong:"-"`
	Sending    cli.Sending    `embed:""`
	Liveness   cli.Liveness   `embed:""`
}

func (d *desk) configure(getenv func(string) string, p *cli.Problems) {
	d.Broker = domain.Secret(getenv("NATS_URL"))
	d.TwoPersons.Configure(getenv, p)
	d.Sending.Configure(getenv, p)
	d.Liveness.Configure(getenv, p)
}

// publisher sends events, or is nil where no broker is known. It connects while the process starts, and again whenever the
// broker was away: that is no reason not to serve.
func (d *desk) publisher(logger *slog.Logger) (outbox.Publisher, func(), error) {
	if d.Broker == "" {
		return nil, func() {}, nil
	}
	conn, err := outbox.Connect(d.Broker.Reveal(), "holdfast-api", logger)
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

func (d *desk) open(
	pool *pgxpool.Pool, service *bookings.Service, waker *outbox.Waker, gateway *stripe.Gateway, publisher outbox.Publisher, logger *slog.Logger,
) *operator.Desk {
	var money *payments.Payments // nil: the provider is not read from here
	if gateway != nil {
		money = payments.New(pool, gateway, waker, payments.Config{
			Horizon: d.Sending.ProviderKeyHorizon, KeyRetention: d.Sending.ProviderKeyRetention, Backoff: d.Sending.SendBackoff,
		}, logger)
	}
	return operator.New(pool, service, money, publisher, operator.Config{
		DeadAfter: d.Liveness.WorkerDeadAfter, SecondPerson: d.TwoPersons.Above, RequestLife: d.TwoPersons.RequestLife,
	}, logger)
}
