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
	ctx context.Context, e outbox.Effect, s send, out Outcome, settle func(b *pgx.Batch, d dossier) (decision, error),
) (decision, error) {
	return p.turn(ctx, e.BookingID, e.ID, func(b *pgx.Batch, d dossier) (decision, error) {
		save(b, d, s, out)
		return settle(b, d)
	})
}

// settleCreate brings home the answer to a create. No money can have moved: an unconfirmed intent takes none.
func (p *Payments) settleCreate(ctx context.Context, e outbox.Effect, r role, s send, out Outcome) (decision, error) {
	return p.bringHome(ctx, e, s, out, func(b *pgx.Batch, d dossier) (decision, error) {
		switch {
		case out.Class == Executed:
			return p.created(ctx, b, d, r, *out.Intent)
		case s.sends == 1 && (out.Class == Rejected || out.Class == Declined || out.Class == KnownState):
			return p.refused(b, d, r, s, out)
		case out.Class == Unknown && out.Stored, out.Class == KeyMismatch, out.Class == Rejected, out.Class == Declined, out.Class == KnownState:
			return p.handOver(b, d, r, s.version, "create: "+out.Detail)
		default:
			return p.later(b, e, s, out), nil
		}
	})
}

// created commits the id of the new intent: from then on every question about the money is a read by that id. The
// confirm that follows is recorded in the same transaction.
func (p *Payments) created(ctx context.Context, b *pgx.Batch, d dossier, r role, i Intent) (decision, error) {
	if err := p.verify(d, i); err != nil {
		p.logger.ErrorContext(ctx, "a charge is parked: the intent is not what was asked for",
			"booking_id", d.booking.ID, "payment_id", d.id(), "intent_id", i.ID)
		outbox.Park(b, d.effect.ID, err.Error())
		r.done(b)
		return decision{}, nil
	}
	d, ours := adopt(b, d, i)
	if !ours {
		p.logger.WarnContext(ctx, "an intent was made for a booking that had moved on; it is unconfirmed and takes no money",
			"booking_id", d.booking.ID, "payment_id", d.id(), "intent_id", i.ID)
		return decision{at: progress{again: true}}, nil // the next step finds that nothing is left to do
	}
	return p.nextCharge(b, d, r)
}

// refused settles a definite refusal of the first and only send of a key. If the effect was meanwhile carried on by
// somebody else, the refusal is stale and the next step looks again.
func (p *Payments) refused(b *pgx.Batch, d dossier, r role, s send, out Outcome) (decision, error) {
	m, err := p.settle(b, d, domain.Observation{Fact: domain.FactRefused, Version: s.version}, seen(out))
	if err != nil || m.Stale {
		return decision{at: progress{again: m.Stale}}, err
	}
	r.done(b)
	return decision{move: m}, nil
}

// seen is the intent that an answer shows, or the refusal in its place.
func seen(out Outcome) *Intent {
	if out.Intent != nil {
		return out.Intent
	}
	return &Intent{LastError: &LastError{Code: out.Code, DeclineCode: out.DeclineCode}}
}

// later leaves the effect with its key for another send, or another reader.
func (p *Payments) later(b *pgx.Batch, e outbox.Effect, s send, out Outcome) decision {
	wait := p.backoff(s.attempts)
	outbox.Note(b, e.ID, string(s.call.Operation)+": "+out.Detail, wait)
	return decision{at: progress{after: wait}}
}

// settleUpdate brings home the answer to an update, which brings another card to the intent. No money can have moved: the
// card before it was declined, and nothing is confirmed before a read has shown the new one.
func (p *Payments) settleUpdate(ctx context.Context, e outbox.Effect, r role, s send, out Outcome) (decision, error) {
	return p.bringHome(ctx, e, s, out, func(b *pgx.Batch, d dossier) (decision, error) {
		switch {
		case out.Class == Executed:
			postgres.Exec(b, "note the provider's name of a card", `UPDATE payments SET provider_method_id = nullif($3, '') WHERE id = $1 AND card = $2`,
				d.payment.ID, s.ordinal, out.Intent.PaymentMethod)
			return decision{at: progress{again: true}}, nil
		case out.Class == KnownState:
			return decision{at: progress{look: true}}, nil // somebody has paid, or it was canceled
		case s.sends == 1 && (out.Class == Declined || out.Class == Rejected):
			m, err := p.settle(b, d, domain.Observation{Fact: domain.FactDeclined, Version: s.version}, seen(out))
			if err != nil || m.Stale {
				return decision{at: progress{again: m.Stale}}, err
			}
			r.done(b)
			return decision{move: m}, nil
		case out.Class == Unknown && out.Stored, out.Class == KeyMismatch, out.Class == Rejected, out.Class == Declined:
			return p.handOver(b, d, r, s.version, "update: "+out.Detail)
		default:
			return p.later(b, e, s, out), nil
		}
	})
}

// settleConfirm brings home the answer to a confirm, the one send that takes money.
func (p *Payments) settleConfirm(ctx context.Context, e outbox.Effect, r role, s send, out Outcome) (decision, error) {
	fact, err := p.factOfConfirm(ctx, e, out)
	if err != nil && !errors.Is(err, ErrUnread) {
		return decision{}, err
	}
	return p.bringHome(ctx, e, s, out, func(b *pgx.Batch, d dossier) (decision, error) {
		switch {
		case fact != domain.FactNothing:
			m, err := p.settle(b, d, domain.Observation{Fact: fact, Version: s.version}, seen(out))
			if err != nil || m.Stale {
				return decision{at: progress{look: m.Stale}}, err
			}
			r.done(b)
			return decision{move: m}, nil
		case out.Class == Executed, out.Class == Declined, out.Class == KnownState:
			return decision{at: progress{look: true}}, nil // it ran, but the answer is a snapshot, or a state that says nothing
		case out.Class == Rejected && s.sends == 1:
			return p.refused(b, d, r, s, out)
		case out.Class == Unknown && out.Stored, out.Class == KeyMismatch, out.Class == Rejected:
			return p.handOver(b, d, r, s.version, "confirm: "+out.Detail)
		default:
			return p.later(b, e, s, out), nil
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
		var d dossier
		if out.Intent.Status == IntentRequiresPaymentMethod { // the one state that means nothing without what was sent
			var err error
			if d, err = p.peek(ctx, e.BookingID); err != nil {
				return domain.FactNothing, err
			}
		}
		return p.factOf(ctx, d, out.Intent, !out.Replayed)
	case Unknown, Rejected, Busy, NotExecuted, KeyMismatch:
	}
	return domain.FactNothing, nil
}
