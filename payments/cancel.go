package payments

import (
	"context"

	"github.com/jackc/pgx/v5"

	"holdfast/domain"
	"holdfast/internal/bookings"
	"holdfast/internal/postgres"
)

// Cancel ends a booking that is held, or leaves one as it is that is over; of one that is ending it becomes the reason. Where an intent exists, the slot stays
// taken until the fence has proved what became of it: if the money was taken meanwhile, the booking is cancelled all the
// same and the money goes back. A confirmed booking is not cancelled. It answers as bookings.Service.Once does;
// domain.ErrNotFound decides nothing.
func (k *Desk) Cancel(ctx context.Context, a Ask, show Show) (bookings.Response, error) {
	return k.once(ctx, a, "/cancel", struct{}{}, show, func(ctx context.Context, tx pgx.Tx, d dossier) (decided, error) {
		if d.booking.Status == domain.BookingConfirmed {
			return decided{}, nil
		}
		var b pgx.Batch
		m := domain.Cancel(d.state())
		if err := k.engine.apply(&b, d, m, nil); err != nil {
			return decided{}, err
		}
		if err := postgres.Send(ctx, tx, &b); err != nil {
			return decided{}, err
		}
		made := decided{done: true}
		switch {
		case m.Fence:
			made.wake = domain.EffectCancel
		case m.Event != "":
			made.wake = domain.EffectPublish
		}
		return made, nil
	})
}
