package payments

import (
	"context"

	"github.com/jackc/pgx/v5"

	"holdfast/domain"
	"holdfast/internal/bookings"
	"holdfast/internal/postgres"
)

// ShowCancellation puts what was decided into the caller's words: the booking as it is then, and what its cancellation
// did, or why it did nothing. What it returns is stored under the key, and replayed byte for byte.
type ShowCancellation func(v View, c Cancellation) (status int, body []byte, err error)

// Cancel ends a booking for its customer, or leaves one as it is that is over.
//
// A confirmed booking is over at once: its slot is free, and what its policy gives back at this moment goes back. Of one that is
// held or ending, where an intent exists, the slot stays taken until the fence has proved what became of it; if the money was
// taken, the booking is cancelled all the same, and what goes back is by its policy as of this moment, not of that proof.
// A confirmed booking whose end has passed is not cancelled (CancelTooLate); nor is any whose refund is not the expected one
// (CancelRefused; nil expects nothing).
//
// It answers as bookings.Service.Once does; domain.ErrNotFound decides nothing.
func (k *Desk) Cancel(ctx context.Context, a Ask, expected *domain.Money, show ShowCancellation) (bookings.Response, error) {
	var c Cancellation
	meaning := struct {
		Expected *domain.Money `json:"expected_refund,omitempty"`
	}{expected}
	return k.once(ctx, a, "/cancel", meaning,
		func(v View, _ bool) (int, []byte, error) { return show(v, c) },
		func(ctx context.Context, tx pgx.Tx, d dossier) (made decided, err error) {
			if c, err = d.cancellation(ctx, tx); err != nil || c.Outcome == CancelTooLate {
				return decided{}, err
			}
			if expected != nil && *expected != c.Refund {
				c.Outcome = CancelRefused
			}
			if c.Outcome == CancelRefused || c.Outcome == CancelUnchanged {
				return decided{}, nil
			}
			return k.cancel(ctx, tx, d, c)
		})
}

func (k *Desk) cancel(ctx context.Context, tx pgx.Tx, d dossier, c Cancellation) (decided, error) {
	d.booking.Cancellation = &domain.Cancellation{RequestedAt: c.At, Refund: c.Refund}
	m := domain.Cancel(d.state())
	var b pgx.Batch
	if err := k.engine.apply(&b, d, m, nil); err != nil {
		return decided{}, err
	}
	if err := postgres.Send(ctx, tx, &b); err != nil {
		return decided{}, err
	}
	return decided{move: m}, nil
}
