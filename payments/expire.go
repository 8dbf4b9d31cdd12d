package payments

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"holdfast/domain"
	"holdfast/internal/bookings"
	"holdfast/internal/postgres"
)

// SweepHold begins the end of one booking whose hold is over by the database's clock, and tells whether there was one.
// Where an intent is committed, the slot stays taken until the fence has proved what became of it.
func (p *Payments) SweepHold(ctx context.Context) (bool, error) {
	var moved domain.Move
	var found bool
	err := postgres.InTx(ctx, p.pool, func(tx pgx.Tx) error {
		booking, err := bookings.NextExpired(ctx, tx)
		if errors.Is(err, domain.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		found = true
		d, err := lock(ctx, tx, booking.ID, domain.EffectID{})
		if err != nil {
			return err
		}
		var b pgx.Batch
		if moved, err = p.end(&b, d, domain.EndExpire); err != nil {
			return err
		}
		return postgres.Send(ctx, tx, &b)
	})
	if err != nil {
		return false, fmt.Errorf("sweep a hold: %w", err)
	}
	p.woken(moved)
	return found, nil
}
