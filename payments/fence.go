package payments

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"holdfast/domain"
	"holdfast/internal/postgres"
	"holdfast/outbox"
)

// Fence is the handler of cancel jobs: it proves that the intent of an ending booking can take no money, or finds that
// it has taken it (G4). The slot is released by what is proved, never by having asked.
func (p *Payments) Fence(ctx context.Context, job outbox.Job) (outbox.Verdict, error) {
	r := role{owns: domain.EffectPending, maxSends: p.config.MaxSends, complete: job.Complete}
	return p.run(ctx, job, r, p.fenceStep(notLooked))
}

// looked is what the fence knows of the intent just now.
type looked int

const (
	notLooked  looked = iota
	unreadable        // the provider was asked and did not answer
	fenceable         // it can still take money, and is not processing
)

// fenceStep cancels the intent. A cancel moves no money, so it may be sent again, and under the next ordinal when the
// key before it can answer nothing new, but not while the provider is processing: before anything but the first send the
// intent is read. If it cannot be read, the same key may still bring the answer, and nothing else may be sent.
func (p *Payments) fenceStep(l looked) step {
	return func(ctx context.Context, e outbox.Effect, r role) (progress, error) {
		var d decision
		err := postgres.InTx(ctx, p.pool, func(tx pgx.Tx) error {
			var err error
			d, err = p.recordCancel(ctx, tx, e, r, l)
			return err
		})
		switch {
		case err != nil:
			return progress{}, err
		case d.at.look:
			return p.lookThenFence(ctx, e, r)
		case d.send == nil:
			return d.at, nil
		default:
			return p.settleCancel(ctx, e, r, *d.send, p.transmit(ctx, *d.send))
		}
	}
}

// lookThenFence reads the intent, and goes on with the fence only if it can still take money.
func (p *Payments) lookThenFence(ctx context.Context, e outbox.Effect, r role) (progress, error) {
	s, err := p.look(ctx, e.BookingID, r.complete)
	switch {
	case errors.Is(err, errUnread):
		return p.fenceStep(unreadable)(ctx, e, r)
	case err != nil:
		return progress{}, err
	case s.fact == domain.FactSucceeded || s.fact == domain.FactCanceled:
		return progress{}, nil
	case s.intent.Status == IntentProcessing:
		return p.waitFor(ctx, e, "the provider is still processing the payment")
	case s.intent.Status == IntentCanceled:
		return p.waitFor(ctx, e, "the intent is canceled, and a charge of it is still pending")
	default:
		return p.fenceStep(fenceable)(ctx, e, r)
	}
}

// waitFor leaves the effect until the provider may have more to say.
func (p *Payments) waitFor(ctx context.Context, e outbox.Effect, why string) (progress, error) {
	return progress{after: p.config.Poll}, outbox.Note(ctx, p.pool, e.ID, why, p.config.Poll)
}

func (p *Payments) recordCancel(ctx context.Context, tx pgx.Tx, e outbox.Effect, r role, l looked) (decision, error) {
	d, err := lock(ctx, tx, e.BookingID)
	if err != nil {
		return decision{}, err
	}
	e, err = outbox.LockEffect(ctx, tx, e.ID)
	if err != nil || e.Status != r.owns {
		return decision{}, err
	}
	if d.booking.Status != domain.BookingEnding || d.payment.Status.Closed() {
		err = outbox.Finish(ctx, tx, d.booking.ID, domain.EffectCancel, domain.EffectNotNeeded)
		return decision{}, errors.Join(err, r.done(ctx, tx))
	}
	if r.maxSends > 0 && e.Attempts >= r.maxSends {
		err = outbox.Doubt(ctx, tx, e.ID, "the fence got no answer to any of the sends made so far", 0)
		return decision{}, errors.Join(err, r.done(ctx, tx))
	}
	last := d.last(domain.OpCancel)
	spent := last != nil && (!last.open() || last.dead(d.now, p.config.Horizon))
	processing := d.payment.Status == domain.PaymentProcessing
	switch {
	case l == notLooked && (last != nil || processing):
		return decision{at: progress{look: true}}, nil
	case l == unreadable && (last == nil || spent || processing):
		wait := p.backoff(e.Attempts + 1)
		return decision{at: progress{after: wait}}, outbox.Note(ctx, tx, e.ID, errUnread.Error(), wait)
	}
	ordinal := 1
	if last != nil {
		if rest := p.backoff(e.Attempts) - d.now.Sub(last.LastSentAt); rest > 0 {
			return decision{at: progress{after: rest}}, nil
		}
		ordinal = last.Ordinal
		if spent {
			ordinal++
		}
	}
	s, err := p.record(ctx, tx, d, e, domain.OpCancel, ordinal)
	return decision{send: s}, err
}

// settleCancel brings home the answer to a cancel. Only a final state of the intent ends the booking; everything else
// is looked at again.
func (p *Payments) settleCancel(ctx context.Context, e outbox.Effect, r role, s send, out Outcome) (progress, error) {
	fact := domain.FactNothing
	if out.Intent != nil {
		var err error
		if fact, err = p.factOf(ctx, dossier{}, out.Intent, false); err != nil && !errors.Is(err, errUnread) {
			return progress{}, err
		}
	}
	return p.bringHome(ctx, e, s, out, func(tx pgx.Tx, d dossier) (decision, error) {
		if fact == domain.FactNothing {
			return p.later(ctx, tx, e, s, out)
		}
		m, err := p.settle(ctx, tx, d, domain.Observation{Fact: fact, Version: s.version}, out.Intent)
		return decision{move: m}, errors.Join(err, r.done(ctx, tx))
	})
}
