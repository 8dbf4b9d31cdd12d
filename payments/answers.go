package payments

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"holdfast/domain"
	"holdfast/internal/postgres"
	"holdfast/outbox"
)

// bringHome saves what is known of a send and settles what it means, in one transaction under the booking's lock.
func (p *Payments) bringHome(
	ctx context.Context, e outbox.Effect, s send, out Outcome, settle func(tx pgx.Tx, d dossier) (decision, error),
) (progress, error) {
	var settled decision
	err := postgres.InTx(ctx, p.pool, func(tx pgx.Tx) error {
		d, err := lock(ctx, tx, e.BookingID)
		if err != nil {
			return err
		}
		if err := save(ctx, tx, d, s, out); err != nil {
			return err
		}
		settled, err = settle(tx, d)
		return err
	})
	if err != nil {
		return progress{}, err
	}
	p.woken(settled.move)
	return settled.at, nil
}

// settleCreate brings home the answer to a create. No money can have moved: an unconfirmed intent takes none.
func (p *Payments) settleCreate(ctx context.Context, e outbox.Effect, r role, s send, out Outcome) (progress, error) {
	return p.bringHome(ctx, e, s, out, func(tx pgx.Tx, d dossier) (decision, error) {
		switch {
		case out.Class == Executed:
			return p.created(ctx, tx, d, e, r, *out.Intent)
		case s.sends == 1 && (out.Class == Rejected || out.Class == Declined || out.Class == KnownState):
			return p.refused(ctx, tx, d, r, s, out)
		case out.Class == Unknown && out.Stored, out.Class == KeyMismatch, out.Class == Rejected, out.Class == Declined, out.Class == KnownState:
			return p.handOver(ctx, tx, d, e, r, s.version, "create: "+out.Detail)
		default:
			return p.later(ctx, tx, e, s, out)
		}
	})
}

// created commits the id of the new intent. From then on every question about the money is a read by that id.
func (p *Payments) created(ctx context.Context, tx pgx.Tx, d dossier, e outbox.Effect, r role, i Intent) (decision, error) {
	if err := p.verify(d, i); err != nil {
		p.logger.ErrorContext(ctx, "a charge is parked: the intent is not what was asked for", "booking_id", e.BookingID, "payment_id", d.id(), "intent_id", i.ID)
		return decision{}, errors.Join(outbox.Park(ctx, tx, e.ID, err.Error()), r.done(ctx, tx))
	}
	ours, err := adopt(ctx, tx, d, i)
	if err != nil {
		return decision{}, err
	}
	if !ours {
		p.logger.WarnContext(ctx, "an intent was made for a booking that had moved on; it is unconfirmed and takes no money",
			"booking_id", e.BookingID, "payment_id", d.id(), "intent_id", i.ID)
	}
	return decision{at: progress{again: true}}, nil // the next step confirms it, or finds that nothing is left to do
}

// refused settles a definite refusal of the first and only send of a key. If the effect was meanwhile carried on by
// somebody else, the refusal is stale and the next step looks again.
func (p *Payments) refused(ctx context.Context, tx pgx.Tx, d dossier, r role, s send, out Outcome) (decision, error) {
	m, err := p.settle(ctx, tx, d, domain.Observation{Fact: domain.FactRefused, Version: s.version}, seen(out))
	if err != nil || m.Stale {
		return decision{at: progress{again: m.Stale}}, err
	}
	return decision{move: m}, r.done(ctx, tx)
}

// seen is the intent that an answer shows, or the refusal in its place.
func seen(out Outcome) *Intent {
	if out.Intent != nil {
		return out.Intent
	}
	return &Intent{LastError: &LastError{Code: out.Code, DeclineCode: out.DeclineCode}}
}

// later leaves the effect with its key for another send, or another reader.
func (p *Payments) later(ctx context.Context, tx pgx.Tx, e outbox.Effect, s send, out Outcome) (decision, error) {
	wait := p.backoff(s.attempts)
	return decision{at: progress{after: wait}}, outbox.Note(ctx, tx, e.ID, string(s.call.Operation)+": "+out.Detail, wait)
}

// settleConfirm brings home the answer to a confirm, the one send that takes money.
func (p *Payments) settleConfirm(ctx context.Context, e outbox.Effect, r role, s send, out Outcome) (progress, error) {
	fact, err := p.factOfConfirm(ctx, e, out)
	if err != nil && !errors.Is(err, errUnread) {
		return progress{}, err
	}
	return p.bringHome(ctx, e, s, out, func(tx pgx.Tx, d dossier) (decision, error) {
		switch {
		case fact != domain.FactNothing:
			m, err := p.settle(ctx, tx, d, domain.Observation{Fact: fact, Version: s.version}, seen(out))
			if err != nil || m.Stale {
				return decision{at: progress{look: m.Stale}}, err
			}
			return decision{move: m}, r.done(ctx, tx)
		case out.Class == Executed, out.Class == Declined, out.Class == KnownState:
			return decision{at: progress{look: true}}, nil // it ran, but the answer is a snapshot, or a state that says nothing
		case out.Class == Rejected && s.sends == 1:
			return p.refused(ctx, tx, d, r, s, out)
		case out.Class == Unknown && out.Stored, out.Class == KeyMismatch, out.Class == Rejected:
			return p.handOver(ctx, tx, d, e, r, s.version, "confirm: "+out.Detail)
		default:
			return p.later(ctx, tx, e, s, out)
		}
	})
}

// factOfConfirm says what the answer to a confirm proves by itself.
func (p *Payments) factOfConfirm(ctx context.Context, e outbox.Effect, out Outcome) (domain.Fact, error) {
	switch out.Class {
	case Declined:
		if !out.Replayed {
			return domain.FactDeclined, nil
		}
	case Executed, KnownState:
		d, err := p.peek(ctx, e.BookingID)
		if err != nil {
			return domain.FactNothing, err
		}
		return p.factOf(ctx, d, out.Intent, !out.Replayed)
	case Unknown, Rejected, Busy, NotExecuted, KeyMismatch:
	}
	return domain.FactNothing, nil
}
