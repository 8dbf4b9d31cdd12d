package payments

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

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
		return true, fmt.Errorf("resolve effect %s: %w", e.ID, err) // the lease runs out, and it is tried again
	}
	if at.again {
		at.after = p.config.Backoff
	}
	if at.after > 0 {
		return true, outbox.Note(ctx, p.pool, e.ID, "", at.after)
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
	found, err := p.findIntents(ctx, d)
	if errors.Is(err, errUnread) {
		wait := p.backoff(e.Attempts + 1)
		return progress{after: wait}, outbox.Note(ctx, p.pool, e.ID, unread(err), wait)
	}
	if err != nil {
		return progress{}, err
	}
	var moved domain.Move
	err = postgres.InTx(ctx, p.pool, func(tx pgx.Tx) error {
		now, err := lock(ctx, tx, e.BookingID)
		if err != nil {
			return err
		}
		if i := slices.IndexFunc(found, func(i Intent) bool { return i.Status != IntentCanceled }); i >= 0 {
			_, err := p.created(ctx, tx, now, e, r, found[i])
			return err
		}
		moved, err = p.absent(ctx, tx, now, d.payment.Version)
		return err
	})
	if err != nil {
		return progress{}, err
	}
	p.woken(moved)
	return p.chargeTurn(ctx, e, r)
}

// absent draws the conclusion from a complete listing without an intent of the payment. If the provider's newest answer
// refused the create outright, the payment is refused. A dead create gives way to the next one. Should the provider roll
// one forward later all the same, the intent is an unconfirmed orphan and takes no money.
func (p *Payments) absent(ctx context.Context, tx pgx.Tx, d dossier, version int64) (domain.Move, error) {
	last := d.last(domain.OpCreate)
	switch {
	case last == nil:
		return domain.Move{}, nil
	case last.open() && !last.StoredError && (last.HTTPStatus == http.StatusBadRequest || last.HTTPStatus == http.StatusNotFound):
		seen := &Intent{LastError: &LastError{Code: last.ErrorCode}}
		return p.settle(ctx, tx, d, domain.Observation{Fact: domain.FactRefused, Version: version}, seen)
	case !last.dead(d.now, p.config.Horizon):
		return domain.Move{}, nil
	}
	_, err := tx.Exec(ctx, `
		UPDATE provider_calls SET outcome = 'rejected' WHERE payment_id = $1 AND operation = $2 AND ordinal = $3`,
		d.payment.ID, last.Operation, last.Ordinal)
	if err != nil {
		return domain.Move{}, fmt.Errorf("conclude that %s made nothing: %w", last.Key, err)
	}
	return domain.Move{}, nil
}

// resolveConfirm ends the doubt whether the money was taken. The intent is read first; only if it has not executed so
// far is the same key sent again, or, where that is useless or forbidden, the booking fenced.
func (p *Payments) resolveConfirm(ctx context.Context, e outbox.Effect, r role) (progress, error) {
	s, err := p.look(ctx, e.BookingID, nil)
	switch {
	case errors.Is(err, errUnread):
		wait := p.backoff(e.Attempts + 1)
		return progress{after: wait}, outbox.Note(ctx, p.pool, e.ID, unread(err), wait)
	case err != nil:
		return progress{}, err
	case s.move.Stale:
		return progress{again: true}, nil
	case s.fact == domain.FactProcessing:
		return p.waitFor(ctx, e, "the provider is still processing the payment")
	case !s.unresolved():
		return progress{}, nil
	case s.intent.Status == IntentCanceled:
		return p.waitFor(ctx, e, "the intent is canceled, and a charge of it is still pending")
	case !known(s.intent.Status):
		return p.waitFor(ctx, e, "the intent has a status that is not known here")
	}
	fenced, err := p.fenceIfDead(ctx, e)
	if err != nil || fenced {
		return progress{}, err
	}
	return p.chargeTurn(ctx, e, r)
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
