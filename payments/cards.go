package payments

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"

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

	Refusals *prometheus.CounterVec // counts what is refused for them ([NewCardRefusalCounter]); default: one that nobody sees
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

// ChangeCard commits another card: from then on the payment waits for its charge again, on the same intent and under the
// next confirm key. It is done for a held booking whose card was declined, and for no other. It answers as
// bookings.Service.Once does; *TooManyCardsError and domain.ErrNotFound decide nothing.
func (k *Desk) ChangeCard(ctx context.Context, a Ask, paymentMethod string, show Show) (bookings.Response, error) {
	return k.once(ctx, a, "/payment", map[string]string{"payment_method": paymentMethod}, show,
		func(ctx context.Context, tx pgx.Tx, d dossier) (decided, error) {
			return k.changeCard(ctx, tx, d, a, paymentMethod)
		})
}

func (k *Desk) changeCard(ctx context.Context, tx pgx.Tx, d dossier, a Ask, paymentMethod string) (decided, error) {
	if !domain.TakesCard(d.state()) || !d.now.Before(d.booking.HoldExpiresAt) {
		return decided{}, nil
	}
	if err := k.limit(ctx, tx, a, d); err != nil {
		return decided{}, err
	}
	card := d.payment.Card + 1
	var b pgx.Batch
	postgres.ExecAnd(&b, "take another card", oneRow, `
		UPDATE payments
		   SET card = $3, payment_method = $4, provider_method_id = NULL, status = $5, failure_code = NULL, decline_code = NULL,
		       version = version + 1, updated_at = clock_timestamp(), watch_at = NULL, watches = 0
		 WHERE id = $1 AND version = $2`,
		d.payment.ID, d.payment.Version, card, paymentMethod, domain.PaymentPending)
	postgres.Exec(&b, "count another card", `INSERT INTO card_changes (payment_id, card, client_id, changed_at) VALUES ($1, $2, $3, clock_timestamp())`,
		d.payment.ID, card, a.Client)
	outbox.Append(&b, a.Booking, domain.EffectCharge)
	if err := postgres.Send(ctx, tx, &b); err != nil {
		return decided{}, err
	}
	return decided{done: true, wake: domain.EffectCharge}, nil
}

// limit refuses what looks like the testing of stolen cards.
func (k *Desk) limit(ctx context.Context, tx pgx.Tx, a Ask, d dossier) error {
	if d.payment.Card >= k.limits.PerBooking {
		k.engine.logger.WarnContext(ctx, "no more cards are taken for a booking", "booking_id", a.Booking, "cards", d.payment.Card)
		k.limits.Refusals.WithLabelValues(limitBooking).Inc()
		return &TooManyCardsError{}
	}
	var tried int
	var oldest time.Duration // until the oldest of the last hour is an hour old
	err := tx.QueryRow(ctx, `
		SELECT count(*), coalesce(min(changed_at) + interval '1 hour' - clock_timestamp(), '0')
		  FROM card_changes WHERE client_id = $1 AND changed_at > clock_timestamp() - interval '1 hour'`,
		a.Client).Scan(&tried, &oldest)
	if err != nil {
		return fmt.Errorf("count the cards of a client: %w", err)
	}
	if tried >= k.limits.PerClient {
		k.engine.logger.ErrorContext(ctx, "no more cards are taken from a client: it may be testing stolen ones", "client_id", a.Client, "cards_last_hour", tried)
		k.limits.Refusals.WithLabelValues(limitClient).Inc()
		return &TooManyCardsError{RetryAfter: max(oldest, time.Second)}
	}
	return nil
}
