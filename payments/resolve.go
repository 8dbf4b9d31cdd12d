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
		_, err = p.note(ctx, e, "", at.after)
		return true, err
	}
	return true, nil
}

func (p *Payments) resolve(ctx context.Context, e outbox.Effect) (progress, error) {
	r := role{owns: domain.EffectInDoubt}
	switch e.Kind {
	case domain.EffectCancel:
		return p.lookThenFence(ctx, e, r)
	case domain.EffectRefund:
		return p.lookForRefund(ctx, e, r)
	case domain.EffectCharge, domain.EffectRefresh, domain.EffectPublish:
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
	if errors.Is(err, ErrUnread) {
		return p.note(ctx, e, unread(err), p.backoff(e.Attempts+1))
	}
	if err != nil {
		return progress{}, err
	}
	made, err := p.turn(ctx, e.BookingID, e.ID, func(b *pgx.Batch, now dossier) (decision, error) {
		if i := slices.IndexFunc(found, func(i Intent) bool { return i.Status != IntentCanceled }); i >= 0 {
			return p.created(ctx, b, now, r, found[i])
		}
		return p.absent(b, now, d.payment.Version)
	})
	if err != nil {
		return progress{}, err
	}
	if made.send != nil {
		if at, err := p.carryOut(ctx, e, r, made); err != nil || !at.again && !at.look {
			return at, err
		}
	}
	return p.chargeTurn(ctx, e, r)
}

// absent draws the conclusion from a complete listing without an intent of the payment. If the provider's newest answer
// refused the create outright, the payment is refused. A dead create gives way to the next one. Should the provider roll
// one forward later all the same, the intent is an unconfirmed orphan and takes no money.
func (p *Payments) absent(b *pgx.Batch, d dossier, version int64) (decision, error) {
	last := d.last(domain.OpCreate)
	switch {
	case last == nil:
		return decision{}, nil
	case last.open() && !last.StoredError && (last.HTTPStatus == http.StatusBadRequest || last.HTTPStatus == http.StatusNotFound):
		seen := &Intent{LastError: &LastError{Code: last.ErrorCode}}
		m, err := p.settle(b, d, domain.Observation{Fact: domain.FactRefused, Version: version}, seen)
		return decision{move: m}, err
	case !last.dead(d.now, p.config.Horizon):
		return decision{}, nil
	}
	postgres.Exec(b, "conclude that a create made nothing", `
		UPDATE provider_calls SET outcome = 'rejected' WHERE payment_id = $1 AND operation = $2 AND ordinal = $3`,
		d.payment.ID, last.Operation, last.Ordinal)
	return decision{}, nil
}

// resolveConfirm ends the doubt whether the money was taken. The intent is read first; only if it has not executed so
// far is the same key sent again, or, where that is useless or forbidden, the booking fenced.
func (p *Payments) resolveConfirm(ctx context.Context, e outbox.Effect, r role) (progress, error) {
	s, err := p.look(ctx, e.BookingID, nil)
	switch {
	case errors.Is(err, ErrUnread):
		return p.note(ctx, e, unread(err), p.backoff(e.Attempts+1))
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

// fenceIfDead ends the booking for doubt if its confirm, or the update before it, can be sent no more. The hold may still run: after a stored
// error nobody can say whether the charge comes yet, and only the fence finds out.
func (p *Payments) fenceIfDead(ctx context.Context, e outbox.Effect) (bool, error) {
	made, err := p.turn(ctx, e.BookingID, e.ID, func(b *pgx.Batch, d dossier) (decision, error) {
		op, ordinal := nextSend(d)
		if c := d.find(op, ordinal); c == nil || !c.dead(d.now, p.config.Horizon) {
			return decision{}, nil
		}
		m, err := p.end(b, d, domain.EndDoubt)
		return decision{move: m}, err
	})
	return made.move.Changed, err
}

// chargeTurn takes the steps that a worker would take, for an effect that is the reconciler's.
func (p *Payments) chargeTurn(ctx context.Context, e outbox.Effect, r role) (progress, error) {
	verdict, err := p.run(ctx, outbox.Job{Effect: e.ID}, r, p.chargeStep)
	return progress{after: verdict.After}, err
}
