package payments

import (
	"cmp"
	"context"
	"log/slog"

	"github.com/jackc/pgx/v5"

	"holdfast/domain"
	"holdfast/internal/bookings"
)

// Desk is where a customer asks something of a booking: to pay with another card, or to cancel. It sends nothing to the
// provider: what was committed here, workers carry out.
type Desk struct {
	service *bookings.Service
	engine  *Payments // without a gateway
	limits  CardLimits
}

// NewDesk makes it.
func NewDesk(service *bookings.Service, waker Waker, limits CardLimits, logger *slog.Logger) *Desk {
	limits.PerBooking = cmp.Or(limits.PerBooking, 5)
	limits.PerClient = cmp.Or(limits.PerClient, 60)
	if limits.Refusals == nil {
		limits.Refusals = NewCardRefusalCounter()
	}
	return &Desk{service: service, engine: New(nil, nil, waker, Config{}, logger), limits: limits}
}

// Ask is a keyed request about a booking.
type Ask struct {
	Client  domain.ClientID
	Booking domain.BookingID
	Key     string // the request's idempotency key
}

// Show puts what was decided into the caller's words: the booking as it is then, and whether it was done or is not called
// for. What it returns is stored under the key, and replayed byte for byte.
type Show func(v View, done bool) (status int, body []byte, err error)

// decided is what an ask has led to, in the transaction.
type decided struct {
	done bool
	move domain.Move       // whose effects its commit has left to do
	wake domain.EffectKind // another of them
}

// once decides an ask once for its key (bookings.Service.Once), under the booking's lock.
func (k *Desk) once(
	ctx context.Context, a Ask, route string, meaning any, show Show,
	decide func(ctx context.Context, tx pgx.Tx, d dossier) (decided, error),
) (bookings.Response, error) {
	location := "/v1/bookings/" + a.Booking.String()
	var made decided
	answer, err := k.service.Once(ctx, bookings.Keyed{
		Client: a.Client, Route: location + route, Key: a.Key, Meaning: meaning,
	}, func(ctx context.Context, tx pgx.Tx) (bookings.Decided, error) {
		answer := bookings.Decided{Booking: a.Booking, Location: location}
		if _, err := bookings.Get(ctx, tx, a.Client, a.Booking); err != nil { // another client's does not exist
			return answer, err
		}
		d, err := lockMoney(ctx, tx, a.Booking, domain.EffectID{})
		if err != nil {
			return answer, err
		}
		if made, err = decide(ctx, tx, d); err != nil {
			return answer, err
		}
		v, err := view(ctx, tx, a.Client, a.Booking)
		if err != nil {
			return answer, err
		}
		answer.Status, answer.Body, err = show(v, made.done)
		return answer, err
	})
	if err == nil {
		k.engine.woken(made.move)
		if made.wake != "" {
			k.engine.waker.Wake(made.wake)
		}
	}
	return answer, err
}
