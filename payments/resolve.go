package payments

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"holdfast/domain"
	"holdfast/internal/postgres"
	"holdfast/outbox"
)

// ResolveDoubt takes the oldest doubt that is due and tries to end it by asking the provider. It tells whether there
// was one. Several reconcilers share the work: a claimed doubt belongs to one of them for a lease, and if that one dies
// another takes it up; two at once would be harmless all the same.
func (p *Payments) ResolveDoubt(ctx context.Context) (bool, error) {
	e, found, err := outbox.ClaimDoubt(ctx, p.pool, p.config.Lease)
	if err != nil || !found {
		return false, err
	}
	at, err := p.resolve(ctx, e)
	if err != nil {
		return true, err // the lease runs out, and it is tried again
	}
	if at.after > 0 || at.doubt != "" || at.again {
		wait := max(at.after, p.config.Backoff)
		return true, outbox.Note(ctx, p.pool, e.ID, at.doubt, wait)
	}
	return true, nil
}

func (p *Payments) resolve(ctx context.Context, e outbox.Effect) (progress, error) {
	r := role{owns: domain.EffectInDoubt}
	if e.Kind == domain.EffectCancel {
		return p.lookThenFence(ctx, e, r)
	}
	d, err := p.peek(ctx, e.BookingID)
	if err != nil {
		return progress{}, err
	}
	if d.payment.ProviderIntentID == "" {
		return p.resolveCreate(ctx, e, r, d)
	}
	return p.resolveConfirm(ctx, e, r)
}

// resolveCreate ends the doubt whether an intent was made: list, and adopt what is found; else the same key again, or
// the next one where the provider has stored an error under it. Nothing was ever confirmed, so no money is at stake.
func (p *Payments) resolveCreate(ctx context.Context, e outbox.Effect, r role, d dossier) (progress, error) {
	found, err := p.findIntent(ctx, d)
	if err != nil {
		p.logger.WarnContext(ctx, lookTimeout, "booking_id", e.BookingID, "effect_id", e.ID, "error", err)
		return progress{after: p.backoff(e.Attempts), doubt: lookTimeout}, nil
	}
	err = postgres.InTx(ctx, p.pool, func(tx pgx.Tx) error {
		d, err := lock(ctx, tx, e.BookingID)
		if err != nil {
			return err
		}
		if found != nil {
			if err := verify(d, *found); err != nil {
				return outbox.Park(ctx, tx, e.ID, err.Error())
			}
			_, err := adopt(ctx, tx, d, *found)
			return err
		}
		last := d.last(domain.OpCreate)
		if last == nil || !last.dead(d.now, p.config.Horizon) {
			return nil
		}
		return absent(ctx, tx, d, last)
	})
	if err != nil {
		return progress{}, err
	}
	return p.chargeTurn(ctx, e, r)
}

// absent notes that a complete listing lacks what a dead create would have made. Should the provider roll it forward
// later all the same, the intent is an unconfirmed orphan and takes no money.
func absent(ctx context.Context, tx pgx.Tx, d dossier, c *call) error {
	_, err := tx.Exec(ctx, `
		UPDATE provider_calls SET outcome = 'rejected' WHERE payment_id = $1 AND operation = $2 AND ordinal = $3`,
		d.payment.ID, c.Operation, c.Ordinal)
	return err
}

// resolveConfirm ends the doubt whether the money was taken. The intent is read first; only if it has not executed so
// far is the same key sent again, or, where that is useless or forbidden, the booking fenced.
func (p *Payments) resolveConfirm(ctx context.Context, e outbox.Effect, r role) (progress, error) {
	s, err := p.look(ctx, e.BookingID, nil)
	switch {
	case err != nil:
		p.logger.WarnContext(ctx, lookTimeout, "booking_id", e.BookingID, "effect_id", e.ID, "error", err)
		reason := lookTimeout
		if errors.Is(err, ErrNoIntent) {
			reason = ErrNoIntent.Error()
		}
		return progress{after: p.backoff(e.Attempts), doubt: reason}, nil
	case s.move.Stale:
		return progress{again: true}, nil
	case s.fact == domain.FactProcessing:
		return progress{after: p.config.Poll, doubt: "the provider is still processing the payment"}, nil
	case !s.unresolved():
		return progress{}, nil
	case s.intent.Status == IntentCanceled:
		return progress{after: p.config.Poll, doubt: "the intent is canceled, and a charge of it is still pending"}, nil
	case !understood(s.intent.Status):
		return progress{after: p.config.Poll, doubt: "the intent has a status that is not known here"}, nil
	}
	fenced, err := p.fenceIfDead(ctx, e)
	if err != nil || fenced {
		return progress{}, err
	}
	return p.chargeTurn(ctx, e, r)
}

func understood(s IntentStatus) bool {
	return s == IntentRequiresConfirmation || s == IntentRequiresPaymentMethod
}

// fenceIfDead ends the booking for doubt if its confirm can be sent no more. The hold may still run: after a stored
// error nobody can say whether the charge comes yet, and only the fence finds out.
func (p *Payments) fenceIfDead(ctx context.Context, e outbox.Effect) (bool, error) {
	var moved domain.Move
	err := postgres.InTx(ctx, p.pool, func(tx pgx.Tx) error {
		d, err := lock(ctx, tx, e.BookingID)
		if err != nil {
			return err
		}
		confirm := d.find(domain.OpConfirm, d.payment.Card)
		if confirm == nil || !confirm.dead(d.now, p.config.Horizon) {
			return nil
		}
		moved, err = p.end(ctx, tx, d, domain.EndDoubt)
		return err
	})
	if err != nil {
		return false, err
	}
	p.woken(moved)
	return moved.Changed, nil
}

// chargeTurn takes the steps that a worker would take, for an effect that is the reconciler's.
func (p *Payments) chargeTurn(ctx context.Context, e outbox.Effect, r role) (progress, error) {
	verdict, err := p.run(ctx, outbox.Job{Effect: e.ID}, r, p.chargeStep)
	return progress{after: verdict.After}, err
}
