package payments

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast/domain"
	"holdfast/internal/bookings"
	"holdfast/internal/postgres"
	"holdfast/outbox"
)

// CardLimits says how many other cards may be tried. Whoever tests stolen cards tries many: each try is a small purchase
// for the provider, and a decline costs its merchant's name. Zero values take the defaults.
type CardLimits struct {
	PerBooking int // cards of one booking, the first included; default 5
	PerClient  int // other cards of all bookings of one client within an hour; default 60
}

// Cards lets a customer pay with another card after a decline. It sends nothing: a worker does.
type Cards struct {
	service *bookings.Service
	waker   Waker
	limits  CardLimits
	logger  *slog.Logger
}

// NewCards makes it.
func NewCards(service *bookings.Service, waker Waker, limits CardLimits, logger *slog.Logger) *Cards {
	limits.PerBooking = cmp.Or(limits.PerBooking, 5)
	limits.PerClient = cmp.Or(limits.PerClient, 60)
	return &Cards{service: service, waker: waker, limits: limits, logger: logger}
}

// CardChange asks that a booking be paid with another card.
type CardChange struct {
	Client        domain.ClientID
	Booking       domain.BookingID
	Key           string // the request's idempotency key
	PaymentMethod string // the provider's token
}

// TooManyCardsError says that no other card is taken for now. Nothing was written, and the key is free.
type TooManyCardsError struct {
	RetryAfter time.Duration // 0: never for this booking
}

func (e *TooManyCardsError) Error() string {
	if e.RetryAfter == 0 {
		return "too many cards were tried for this booking"
	}
	return "too many cards were tried lately"
}

// Change commits another card: from then on the payment waits for its charge again, on the same intent and under the next
// confirm key. It is decided once for its key (bookings.Service.Once), and answers as that does, in the words of show: the
// booking as it is then, and whether the card was taken or is not called for. *TooManyCardsError and domain.ErrNotFound,
// another client's booking included, decide nothing.
func (c *Cards) Change(
	ctx context.Context, r CardChange, show func(v View, taken bool) (status int, body []byte, err error),
) (bookings.Response, error) {
	location := "/v1/bookings/" + r.Booking.String()
	answer, err := c.service.Once(ctx, bookings.Keyed{
		Client: r.Client, Route: location + "/payment", Key: r.Key,
		Meaning: map[string]string{"payment_method": r.PaymentMethod},
	}, func(ctx context.Context, tx pgx.Tx) (bookings.Decided, error) {
		made := bookings.Decided{Booking: r.Booking, Location: location}
		v, taken, err := c.change(ctx, tx, r)
		if err != nil {
			return made, err
		}
		made.Status, made.Body, err = show(v, taken)
		return made, err
	})
	if err == nil && !answer.Replayed {
		c.waker.Wake(domain.EffectCharge)
	}
	return answer, err
}

func (c *Cards) change(ctx context.Context, tx pgx.Tx, r CardChange) (View, bool, error) {
	var v View
	if _, err := bookings.Get(ctx, tx, r.Client, r.Booking); err != nil {
		return v, false, err
	}
	d, err := lock(ctx, tx, r.Booking, domain.EffectID{})
	if err != nil {
		return v, false, err
	}
	if !domain.TakesCard(d.state()) || !d.now.Before(d.booking.HoldExpiresAt) {
		return d.view(), false, nil
	}
	if err := c.limit(ctx, tx, r, d); err != nil {
		return v, false, err
	}
	d.payment.Card++
	d.payment.Status, d.payment.PaymentMethod = domain.PaymentPending, r.PaymentMethod
	d.payment.DeclineCode, d.payment.FailureCode = "", ""
	var b pgx.Batch
	postgres.ExecAnd(&b, "take another card", oneRow, `
		UPDATE payments
		   SET card = $3, payment_method = $4, provider_method_id = NULL, status = $5, failure_code = NULL, decline_code = NULL,
		       version = version + 1, updated_at = clock_timestamp(), watch_at = NULL, watches = 0
		 WHERE id = $1 AND version = $2`,
		d.payment.ID, d.payment.Version, d.payment.Card, d.payment.PaymentMethod, d.payment.Status)
	postgres.Exec(&b, "count another card", `INSERT INTO card_changes (payment_id, card, client_id, changed_at) VALUES ($1, $2, $3, clock_timestamp())`,
		d.payment.ID, d.payment.Card, r.Client)
	outbox.Append(&b, outbox.NewEffect{BookingID: r.Booking, Kind: domain.EffectCharge})
	if err := postgres.Send(ctx, tx, &b); err != nil {
		return v, false, err
	}
	return d.view(), true, nil
}

// limit refuses what looks like the testing of stolen cards.
func (c *Cards) limit(ctx context.Context, tx pgx.Tx, r CardChange, d dossier) error {
	if d.payment.Card >= c.limits.PerBooking {
		c.logger.WarnContext(ctx, "no more cards are taken for a booking", "booking_id", r.Booking, "cards", d.payment.Card)
		return &TooManyCardsError{}
	}
	var tried int
	var oldest time.Duration // until the oldest of the last hour is an hour old
	err := tx.QueryRow(ctx, `
		SELECT count(*), coalesce(min(changed_at) + interval '1 hour' - clock_timestamp(), '0')
		  FROM card_changes WHERE client_id = $1 AND changed_at > clock_timestamp() - interval '1 hour'`,
		r.Client).Scan(&tried, &oldest)
	if err != nil {
		return fmt.Errorf("count the cards of a client: %w", err)
	}
	if tried >= c.limits.PerClient {
		c.logger.ErrorContext(ctx, "no more cards are taken from a client: it may be testing stolen ones", "client_id", r.Client, "cards_last_hour", tried)
		return &TooManyCardsError{RetryAfter: max(oldest, time.Second)}
	}
	return nil
}
