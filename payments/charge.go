package payments

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast/domain"
	"holdfast/internal/postgres"
	"holdfast/outbox"
)

// progress says how a step of the protocol left its effect.
type progress struct {
	again bool          // another step can be taken at once
	look  bool          // the provider's answer proves nothing new: read the intent
	after time.Duration // the next step is due after this; zero with again and look false: nothing is left to do
	doubt string        // why the step's owner can go no further on its own; the effect is in_doubt
}

// role is who takes a step: a worker on a pending effect, or the reconciler on one in doubt. Both run the same protocol.
type role struct {
	owns     domain.EffectStatus
	maxSends int                                 // 0: no bound but the back-off
	complete func(context.Context, pgx.Tx) error // completes the River job in the settling transaction; may be nil
}

func (r role) done(ctx context.Context, tx pgx.Tx) error {
	if r.complete == nil {
		return nil
	}
	return r.complete(ctx, tx)
}

const (
	maxSteps    = 8 // create, confirm and a few reads; a job that needs more comes back later
	pauseCheck  = 5 * time.Second
	clockSkew   = 5 * time.Minute // between the provider's clock and the database's
	lookTimeout = "the provider could not be read"
)

// Charge is the handler of charge jobs: it carries one charge effect as far as it will go now. Any number of them may
// run at once, late, or twice for the same effect (G3): each send has the same key, is recorded first, and a job that
// finds the effect settled does nothing.
func (p *Payments) Charge(ctx context.Context, job outbox.Job) (outbox.Verdict, error) {
	r := role{owns: domain.EffectPending, maxSends: p.config.MaxSends, complete: job.Complete}
	return p.run(ctx, job, r, p.chargeStep)
}

// step takes one step for an effect.
type step func(ctx context.Context, e outbox.Effect, r role) (progress, error)

// run loads the job's effect and takes steps until it is settled or has to wait.
func (p *Payments) run(ctx context.Context, job outbox.Job, r role, next step) (outbox.Verdict, error) {
	effect, err := outbox.Load(ctx, p.pool, job.Effect)
	if errors.Is(err, domain.ErrNotFound) {
		return outbox.Verdict{}, nil
	}
	if err != nil {
		return outbox.Verdict{}, err
	}
	job.Annotate(slog.String("booking_id", effect.BookingID.String()))
	for range maxSteps {
		at, err := next(ctx, effect, r)
		if err != nil {
			return outbox.Verdict{}, err
		}
		if at.look {
			if at, err = p.lookStep(ctx, effect, r); err != nil {
				return outbox.Verdict{}, err
			}
		}
		if !at.again {
			return outbox.Verdict{After: at.after}, nil
		}
	}
	return outbox.Verdict{After: p.config.Backoff}, nil
}

// chargeStep records the next send, makes it and settles its outcome.
func (p *Payments) chargeStep(ctx context.Context, e outbox.Effect, r role) (progress, error) {
	var s send
	var at progress
	var moved domain.Move
	err := postgres.InTx(ctx, p.pool, func(tx pgx.Tx) error {
		var err error
		s, moved, at, err = p.recordCharge(ctx, tx, e, r)
		return err
	})
	if err != nil {
		return progress{}, err // nothing is sent after a failed commit of the send's record
	}
	p.woken(moved)
	if s.call.Key == "" {
		return at, nil
	}
	out := p.transmit(ctx, s)
	if s.call.Operation == domain.OpCreate {
		return p.settleCreate(ctx, e, r, s, out)
	}
	return p.settleConfirm(ctx, e, r, s, out)
}

// recordCharge decides, under the booking's lock, what may be sent next, and records it. No key in the send: nothing.
func (p *Payments) recordCharge(ctx context.Context, tx pgx.Tx, e outbox.Effect, r role) (send, domain.Move, progress, error) {
	var none domain.Move
	d, err := lock(ctx, tx, e.BookingID)
	if err != nil {
		return send{}, none, progress{}, err
	}
	e, err = outbox.LockEffect(ctx, tx, e.ID)
	if err != nil || e.Status != r.owns {
		return send{}, none, progress{}, err // somebody else has carried it on
	}
	if d.booking.Status != domain.BookingHeld || d.payment.Status.Closed() {
		err = outbox.Finish(ctx, tx, d.booking.ID, domain.EffectCharge, domain.EffectNotNeeded)
		return send{}, none, progress{}, errors.Join(err, r.done(ctx, tx))
	}
	if !d.now.Before(d.booking.HoldExpiresAt) { // nobody has swept it yet: no send may follow all the same
		m, err := p.end(ctx, tx, d, domain.EndExpire)
		return send{}, m, progress{}, errors.Join(err, r.done(ctx, tx))
	}
	paused, err := outbox.Paused(ctx, tx, domain.EffectCharge)
	if err != nil || paused {
		return send{}, none, progress{after: pauseCheck}, err
	}
	op, ordinal := nextSend(d)
	if c := d.find(op, ordinal); c != nil {
		switch {
		case c.dead(d.now, p.config.Horizon):
			return p.handOver(ctx, tx, d, e, r, "the key of "+string(op)+" can be sent no more, and its outcome is unknown")
		case !c.open():
			return send{}, none, progress{look: true}, nil // it ran; sending it again would only replay its first answer
		case r.maxSends > 0 && e.Attempts >= r.maxSends:
			return p.handOver(ctx, tx, d, e, r, "no answer to any of the sends made so far")
		}
		if rest := p.backoff(c.Sends) - d.now.Sub(c.LastSentAt); rest > 0 {
			return send{}, none, progress{after: rest}, nil // a twin has just sent it
		}
	}
	s, err := p.record(ctx, tx, d, op, ordinal)
	if err != nil {
		return send{}, none, progress{}, err
	}
	return s, none, progress{}, outbox.CountAttempt(ctx, tx, e.ID)
}

// nextSend says which send the payment needs: the create of its one intent, then the confirm of the newest card. A
// create takes the next ordinal only after a listing has shown that the one before it made nothing.
func nextSend(d dossier) (domain.Operation, int) {
	if d.payment.ProviderIntentID != "" {
		return domain.OpConfirm, d.payment.Card
	}
	last := d.last(domain.OpCreate)
	switch {
	case last == nil:
		return domain.OpCreate, 1
	case last.Outcome == Rejected.String():
		return domain.OpCreate, last.Ordinal + 1
	default:
		return domain.OpCreate, last.Ordinal
	}
}

// handOver gives the effect to the reconciler: more sends prove nothing, and a doubt is never called failure (G4).
func (p *Payments) handOver(ctx context.Context, tx pgx.Tx, d dossier, e outbox.Effect, r role, why string) (send, domain.Move, progress, error) {
	m, err := p.doubt(ctx, tx, d, e, why)
	return send{}, m, progress{doubt: why}, errors.Join(err, r.done(ctx, tx))
}

func (p *Payments) doubt(ctx context.Context, tx pgx.Tx, d dossier, e outbox.Effect, why string) (domain.Move, error) {
	m, err := p.settle(ctx, tx, d, domain.Observation{Fact: domain.FactDoubt, Version: d.payment.Version}, nil)
	if err != nil {
		return m, err
	}
	return m, outbox.Doubt(ctx, tx, e.ID, why, 0)
}

// lookStep reads the intent and settles what it shows; if that is nothing new, the effect waits for its next turn.
func (p *Payments) lookStep(ctx context.Context, e outbox.Effect, r role) (progress, error) {
	s, err := p.look(ctx, e.BookingID, r.complete)
	if err != nil {
		p.logger.WarnContext(ctx, lookTimeout, "booking_id", e.BookingID, "effect_id", e.ID, "error", err)
		return progress{after: p.backoff(e.Attempts + 1)}, outbox.Note(ctx, p.pool, e.ID, lookTimeout, p.backoff(e.Attempts+1))
	}
	switch {
	case s.move.Stale:
		return progress{again: true}, nil
	case s.unresolved():
		return progress{after: p.backoff(e.Attempts + 1)}, nil
	default:
		return progress{}, nil
	}
}
