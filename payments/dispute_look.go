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

// disputeSight is what a look at an intent's disputes has shown.
type disputeSight struct {
	found  []ProviderDispute
	stale  bool // the payment has moved on since the look began: nothing was settled
	denied bool // the provider takes back what it had called final
}

// lookForDispute acts on an event of a dispute: it lists the disputes of the intent and settles all that they show.
func (p *Payments) lookForDispute(ctx context.Context, c claimed, about subject) (verdict, error) {
	if v, err := p.lookForSuccess(ctx, c, about); err != nil || v.status != receiptSettled {
		return v, err
	}
	s, err := p.lookForDisputes(ctx, about.booking, c)
	at := slices.IndexFunc(s.found, func(f ProviderDispute) bool { return f.ID == c.ObjectID })
	switch {
	case errors.Is(err, ErrUnread):
		return verdict{receiptPending, unread(err)}, nil
	case err != nil:
		return verdict{}, err
	case s.stale:
		return verdict{receiptPending, "something moved while we looked"}, nil
	case s.denied:
		return verdict{receiptParked, "the provider takes back the end of a dispute"}, nil
	case at < 0:
		return verdict{receiptPending, "it tells of a dispute that the provider does not show yet"}, nil
	case c.Type == eventDisputeClosed && !s.found[at].Status.Final():
		return verdict{receiptPending, "it tells of an end that the provider does not show yet"}, nil
	default:
		return verdict{status: receiptSettled}, nil
	}
}

// lookForDisputes lists the disputes of a booking's intent and settles them. ErrUnread means that the provider told
// nothing.
//
// A listing applies only while the payment has the version that it had before the provider was asked, and whatever a
// listing changes raises the version: so the listings that apply were made one after the other, and none is older than
// what the rows tell.
func (p *Payments) lookForDisputes(ctx context.Context, id domain.BookingID, c claimed) (disputeSight, error) {
	before, err := p.peek(ctx, id) // the version first, then the question
	if err != nil {
		return disputeSight{}, err
	}
	var s disputeSight
	if s.found, err = p.gateway.Disputes(ctx, before.payment.ProviderIntentID); err != nil {
		return disputeSight{}, fmt.Errorf("%w: %w", ErrUnread, err)
	}
	var moves []disputeMove
	err = postgres.InTx(ctx, p.pool, func(tx pgx.Tx) error {
		d, err := lock(ctx, tx, id, domain.EffectID{})
		if err != nil {
			return err
		}
		if s.stale = d.payment.Version != before.payment.Version; s.stale {
			return nil
		}
		var known []disputeRow
		var read, b pgx.Batch
		readDisputes(&read, []uuid.UUID{id.UUID}, &known)
		if err := postgres.Send(ctx, tx, &read); err != nil {
			return err
		}
		if moves, err = settleDisputes(&b, d, known, s.found); err != nil {
			return err
		}
		noteClosing(&b, c)
		return postgres.Send(ctx, tx, &b)
	})
	if err != nil {
		return disputeSight{}, err
	}
	for _, m := range moves {
		s.denied = s.denied || m.Denied
		p.logDispute(ctx, id, m)
		if m.Tell {
			p.waker.Wake(domain.EffectPublish)
		}
	}
	return s, nil
}

// logDispute writes a line for people, if there is something for them: every dispute that opens has a deadline by which it
// can be answered.
func (p *Payments) logDispute(ctx context.Context, id domain.BookingID, m disputeMove) {
	log, says := p.logger.InfoContext, "a dispute has moved on"
	switch {
	case m.Denied:
		log, says = p.logger.ErrorContext, "the provider takes back the end of a dispute: nothing was changed; look at it in the provider's dashboard"
	case !m.Tell:
		return
	case !m.seen.Status.Known():
		log, says = p.logger.ErrorContext, "a dispute has a status that is not known here: it counts as open; look at it in the provider's dashboard"
	case m.isNew:
		log, says = p.logger.WarnContext, "a dispute was opened: answer it in the provider's dashboard before its deadline"
	}
	log(ctx, says, "booking_id", id, "dispute_id", m.seen.ID, "dispute_status", string(m.seen.Status), "reason", m.seen.Reason,
		"amount", m.seen.Amount.String())
}
