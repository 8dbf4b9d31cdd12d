package payments

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"holdfast/domain"
	"holdfast/internal/postgres"
	"holdfast/outbox"
)

// AtStake tells what money each of the effects would move if it happened: a charge, and the cancel that proves whether it did, the
// whole payment, until it is closed; a refund, its own amount. An effect that moves none is left out.
func AtStake(ctx context.Context, q postgres.Querier, effects []outbox.Effect) (map[domain.EffectID]domain.Money, error) {
	var bookings, refunds []uuid.UUID
	for _, e := range effects {
		switch e.Kind {
		case domain.EffectCharge, domain.EffectCancel:
			bookings = append(bookings, e.BookingID.UUID)
		case domain.EffectRefund:
			refunds = append(refunds, e.ID.UUID)
		case domain.EffectRefresh, domain.EffectPublish: // no money
		}
	}
	stake := make(map[domain.EffectID]domain.Money, len(effects))
	if bookings == nil && refunds == nil {
		return stake, nil
	}
	rows, err := q.Query(ctx, `
		SELECT booking_id AS id, amount, currency FROM payments
		 WHERE booking_id = ANY ($1) AND status NOT IN ('succeeded', 'canceled', 'refused')
		UNION ALL
		SELECT effect_id, amount, currency FROM refunds WHERE effect_id = ANY ($2)`, bookings, refunds)
	if err != nil {
		return nil, fmt.Errorf("read what is at stake: %w", err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByName[struct {
		ID       uuid.UUID
		Amount   int64
		Currency string
	}])
	if err != nil {
		return nil, fmt.Errorf("read what is at stake: %w", err)
	}
	by := make(map[uuid.UUID]domain.Money, len(found)) // ids of bookings and of effects are never the same
	for _, f := range found {
		by[f.ID] = domain.Money{Amount: f.Amount, Currency: f.Currency}
	}
	for _, e := range effects {
		of := e.ID.UUID
		if e.Kind != domain.EffectRefund {
			of = e.BookingID.UUID
		}
		if m, is := by[of]; is && e.Kind != domain.EffectRefresh && e.Kind != domain.EffectPublish {
			stake[e.ID] = m
		}
	}
	return stake, nil
}
