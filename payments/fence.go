package payments

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"holdfast/domain"
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
		d, err := p.turn(ctx, e.BookingID, e.ID, func(b *pgx.Batch, d dossier) (decision, error) { return p.nextCancel(b, d, r, l) })
		switch {
		case err != nil:
			return progress{}, err
		case d.at.look:
			return p.lookThenFence(ctx, e, r)
		case d.send == nil:
			return d.at, nil
		default:
			d, err = p.settleCancel(ctx, e, r, *d.send, p.transmit(ctx, *d.send))
			return d.at, err
		}
	}
}

// lookThenFence reads the intent, and goes on with the fence only if it can still take money.
func (p *Payments) lookThenFence(ctx context.Context, e outbox.Effect, r role) (progress, error) {
	s, err := p.look(ctx, e.BookingID, r.complete)
	switch {
	case errors.Is(err, ErrUnread):
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
	return p.note(ctx, e, why, p.config.Poll)
}

// nextCancel decides whether a cancel may be sent now, and records it.
func (p *Payments) nextCancel(b *pgx.Batch, d dossier, r role, l looked) (decision, error) {
	e := d.effect
	if e.Status != r.owns {
		return decision{}, nil
	}
	if d.booking.Status != domain.BookingEnding || d.payment.Status.Closed() {
		r.done(b)
		return decision{}, outbox.Finish(b, d.booking.ID, domain.EffectCancel, domain.EffectNotNeeded)
	}
	if r.maxSends > 0 && e.Attempts >= r.maxSends {
		outbox.Doubt(b, e.ID, "the fence got no answer to any of the sends made so far", 0)
		r.done(b)
		return decision{}, nil
	}
	last := d.last(domain.OpCancel)
	spent := last != nil && (!last.open() || last.dead(d.now, p.config.Horizon))
	processing := d.payment.Status == domain.PaymentProcessing
	switch {
	case l == notLooked && (last != nil || processing):
		return decision{at: progress{look: true}}, nil
	case l == unreadable && (last == nil || spent || processing):
		wait := p.backoff(e.Attempts + 1)
		outbox.Note(b, e.ID, ErrUnread.Error(), wait)
		return decision{at: progress{after: wait}}, nil
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
	return decision{send: p.record(b, d, domain.OpCancel, ordinal)}, nil
}

// settleCancel brings home the answer to a cancel. Only a final state of the intent ends the booking; everything else
// is looked at again.
func (p *Payments) settleCancel(ctx context.Context, e outbox.Effect, r role, s send, out Outcome) (decision, error) {
	fact := domain.FactNothing
	if out.Intent != nil {
		var err error
		if fact, err = p.factOf(ctx, dossier{}, out.Intent, false); err != nil && !errors.Is(err, ErrUnread) {
			return decision{}, err
		}
	}
	return p.bringHome(ctx, e, s, out, func(b *pgx.Batch, d dossier) (decision, error) {
		if fact == domain.FactNothing {
			return p.later(b, e, s, out), nil
		}
		m, err := p.settle(b, d, domain.Observation{Fact: fact, Version: s.version}, out.Intent)
		r.done(b)
		return decision{move: m}, err
	})
}
