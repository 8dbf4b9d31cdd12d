package payments

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"holdfast/domain"
	"holdfast/internal/postgres"
)

// lookAtRefunds lists the refunds of a payment's intent and settles what they show, whoever made them. It tells whether something
// was sent meanwhile, in which case nothing was settled. within adds to the settling transaction; it may be nil.
// ErrUnread means that the provider told nothing.
func (p *Payments) lookAtRefunds(ctx context.Context, id domain.BookingID, within func(*pgx.Batch)) (found []ProviderRefund, stale bool, err error) {
	before, err := p.peek(ctx, id) // the version first, then the question
	if err != nil {
		return nil, false, err
	}
	if found, err = p.gateway.Refunds(ctx, before.payment.ProviderIntentID); err != nil {
		return nil, false, fmt.Errorf("%w: %w", ErrUnread, err)
	}
	var m domain.Move
	err = postgres.InTx(ctx, p.pool, func(tx pgx.Tx) error {
		d, err := lockMoney(ctx, tx, id, domain.EffectID{})
		if stale = d.payment.Version != before.payment.Version; err != nil || stale {
			return err
		}
		var b pgx.Batch
		if within != nil {
			within(&b)
		}
		if m, err = p.settleListed(&b, &d, found); err != nil {
			return err
		}
		return postgres.Send(ctx, tx, &b)
	})
	if err != nil {
		return nil, false, err
	}
	p.woken(m)
	return found, stale, nil
}

// WatchRefund lists the refunds of one payment of which one is due to be seen again although nothing is in doubt, and tells
// whether there was one: the refund of a card may fail as late as a month after it succeeded, and what was begun at the
// provider's dashboard may end at any time. Without it both would have to wait for somebody to tell us.
func (p *Payments) WatchRefund(ctx context.Context) (bool, error) {
	var id, booking uuid.UUID
	err := p.pool.QueryRow(ctx, `
		UPDATE refunds AS f SET watch_at = clock_timestamp() + $1::interval
		  FROM payments p
		 WHERE p.id = f.payment_id
		   AND f.id = (SELECT due.id FROM refunds AS due WHERE due.watch_at <= clock_timestamp() ORDER BY due.watch_at LIMIT 1 FOR UPDATE SKIP LOCKED)
		RETURNING f.id, p.booking_id`, p.config.Lease).Scan(&id, &booking)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("claim a refund to watch: %w", err)
	}
	_, _, err = p.lookAtRefunds(ctx, domain.BookingID{UUID: booking}, func(b *pgx.Batch) {
		postgres.Exec(b, "say when a refund is watched next", `
			UPDATE refunds
			   SET watches = watches + 1,
			       watch_at = CASE WHEN status = 'pending' OR settled_at + $2::interval > clock_timestamp()
			           THEN clock_timestamp() + $3::interval * power(2, least(watches + 1, CASE status WHEN 'pending' THEN 2 ELSE 8 END)) END
			 WHERE id = $1`, id, p.config.RefundWatch, firstRefundWatch)
	})
	if errors.Is(err, ErrUnread) {
		return true, nil // it is due again after the lease
	}
	return true, err
}

// lookForRefundEvent acts on a receipt that tells of a refund: it lists the refunds of the payment and settles what they show.
func (p *Payments) lookForRefundEvent(ctx context.Context, c claimed, about subject) (verdict, error) {
	if v, err := p.lookForSuccess(ctx, c, about); err != nil || v.status != receiptSettled {
		return v, err
	}
	found, stale, err := p.lookAtRefunds(ctx, about.booking, nil)
	named := func(x ProviderRefund) bool { return x.ID == c.ObjectID }
	switch {
	case errors.Is(err, ErrUnread):
		return verdict{receiptPending, unread(err)}, nil
	case err != nil:
		return verdict{}, err
	case stale:
		return verdict{receiptPending, "something was sent while we looked"}, nil
	case c.ObjectType == "refund" && !slices.ContainsFunc(found, named), len(found) == 0:
		return verdict{receiptPending, "it tells of a refund that the provider does not list yet"}, nil
	default:
		return verdict{status: receiptSettled}, nil
	}
}
