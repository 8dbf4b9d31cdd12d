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
	return p.run(ctx, job, r, p.fenceStep(false))
}

// fenceStep cancels the intent. A cancel moves no money, so it may take the next ordinal when the key before it can
// answer nothing new, but only after a read that still calls for it; read says that one has just been made.
func (p *Payments) fenceStep(read bool) step {
	return func(ctx context.Context, e outbox.Effect, r role) (progress, error) {
		var s send
		var at progress
		err := postgres.InTx(ctx, p.pool, func(tx pgx.Tx) error {
			var err error
			s, at, err = p.recordCancel(ctx, tx, e, r, read)
			return err
		})
		if err != nil {
			return progress{}, err
		}
		if at.look { // the key is spent: read, and go on only if the intent can still take money
			return p.lookThenFence(ctx, e, r)
		}
		if s.call.Key == "" {
			return at, nil
		}
		return p.settleCancel(ctx, e, r, s, p.transmit(ctx, s))
	}
}

func (p *Payments) lookThenFence(ctx context.Context, e outbox.Effect, r role) (progress, error) {
	s, err := p.look(ctx, e.BookingID, r.complete)
	switch {
	case err != nil:
		p.logger.WarnContext(ctx, lookTimeout, "booking_id", e.BookingID, "effect_id", e.ID, "error", err)
		return progress{after: p.backoff(e.Attempts + 1)}, outbox.Note(ctx, p.pool, e.ID, lookTimeout, p.backoff(e.Attempts+1))
	case s.fact == domain.FactSucceeded || s.fact == domain.FactCanceled:
		return progress{}, nil
	case s.intent.Status == IntentProcessing || s.intent.Status == IntentCanceled:
		return progress{after: p.config.Poll}, nil // wait: a cancel would be refused, or a charge is still pending
	default:
		return p.fenceStep(true)(ctx, e, r)
	}
}

func (p *Payments) recordCancel(ctx context.Context, tx pgx.Tx, e outbox.Effect, r role, read bool) (send, progress, error) {
	d, err := lock(ctx, tx, e.BookingID)
	if err != nil {
		return send{}, progress{}, err
	}
	e, err = outbox.LockEffect(ctx, tx, e.ID)
	if err != nil || e.Status != r.owns {
		return send{}, progress{}, err
	}
	if d.booking.Status != domain.BookingEnding || d.payment.Status.Closed() {
		err = outbox.Finish(ctx, tx, d.booking.ID, domain.EffectCancel, domain.EffectNotNeeded)
		return send{}, progress{}, errors.Join(err, r.done(ctx, tx))
	}
	ordinal := 1
	if c := d.last(domain.OpCancel); c != nil {
		ordinal = c.Ordinal
		spent := !c.open() || c.dead(d.now, p.config.Horizon)
		switch rest := p.backoff(c.Sends) - d.now.Sub(c.LastSentAt); {
		case r.maxSends > 0 && e.Attempts >= r.maxSends:
			const why = "the fence got no answer to any of the sends made so far"
			err = outbox.Doubt(ctx, tx, e.ID, why, 0)
			return send{}, progress{doubt: why}, errors.Join(err, r.done(ctx, tx))
		case spent && !read:
			return send{}, progress{look: true}, nil
		case rest > 0:
			return send{}, progress{after: rest}, nil
		case spent:
			ordinal++
		}
	}
	s, err := p.record(ctx, tx, d, domain.OpCancel, ordinal)
	if err != nil {
		return send{}, progress{}, err
	}
	return s, progress{}, outbox.CountAttempt(ctx, tx, e.ID)
}

// settleCancel brings home the answer to a cancel. Only a final state of the intent ends the booking; everything else
// is looked at again.
func (p *Payments) settleCancel(ctx context.Context, e outbox.Effect, r role, s send, out Outcome) (progress, error) {
	fact := domain.FactNothing
	if out.Intent != nil {
		var err error
		if fact, err = p.factOf(ctx, dossier{}, *out.Intent, false); err != nil {
			p.logger.WarnContext(ctx, lookTimeout, "booking_id", e.BookingID, "effect_id", e.ID, "error", err)
		}
	}
	at := progress{after: p.backoff(s.sends)}
	var moved domain.Move
	err := postgres.InTx(ctx, p.pool, func(tx pgx.Tx) error {
		d, err := lock(ctx, tx, e.BookingID)
		if err != nil {
			return err
		}
		if err := save(ctx, tx, d, s, out); err != nil {
			return err
		}
		if fact == domain.FactNothing {
			at, err = p.later(ctx, tx, e, s, out)
			return err
		}
		if moved, err = p.settle(ctx, tx, d, domain.Observation{Fact: fact, Version: s.version}, out.Intent); err != nil {
			return err
		}
		at = progress{}
		return r.done(ctx, tx)
	})
	if err != nil {
		return progress{}, err
	}
	p.woken(moved)
	return at, nil
}
