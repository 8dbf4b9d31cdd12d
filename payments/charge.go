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

// progress says how a step of the protocol left its effect. Its zero value: nothing is left to do for its owner.
type progress struct {
	again bool          // another step can be taken at once
	look  bool          // the provider's answer proves nothing new: read the intent
	after time.Duration // the next step is due after this
}

// decision is what was committed before a send: the send itself, or none and how the effect stands instead.
type decision struct {
	send *send
	at   progress
	move domain.Move
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
	maxSteps   = 8 // create, confirm and a few reads; a job that needs more comes back later
	pauseCheck = 5 * time.Second
	clockSkew  = 5 * time.Minute // between the provider's clock and the database's
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
	var d decision
	err := postgres.InTx(ctx, p.pool, func(tx pgx.Tx) error {
		var err error
		d, err = p.recordCharge(ctx, tx, e, r)
		return err
	})
	if err != nil {
		return progress{}, err // nothing is sent after a failed commit of the send's record
	}
	p.woken(d.move)
	if d.send == nil {
		return d.at, nil
	}
	out := p.transmit(ctx, *d.send)
	if d.send.call.Operation == domain.OpCreate {
		return p.settleCreate(ctx, e, r, *d.send, out)
	}
	return p.settleConfirm(ctx, e, r, *d.send, out)
}

// recordCharge decides, under the booking's lock, what may be sent next, and records it.
func (p *Payments) recordCharge(ctx context.Context, tx pgx.Tx, e outbox.Effect, r role) (decision, error) {
	d, err := lock(ctx, tx, e.BookingID)
	if err != nil {
		return decision{}, err
	}
	e, err = outbox.LockEffect(ctx, tx, e.ID)
	if err != nil || e.Status != r.owns {
		return decision{}, err // somebody else has carried it on
	}
	if d.booking.Status != domain.BookingHeld || d.payment.Status.Closed() {
		err = outbox.Finish(ctx, tx, d.booking.ID, domain.EffectCharge, domain.EffectNotNeeded)
		return decision{}, errors.Join(err, r.done(ctx, tx))
	}
	if !d.now.Before(d.booking.HoldExpiresAt) { // nobody has swept it yet: no send may follow all the same
		m, err := p.end(ctx, tx, d, domain.EndExpire)
		return decision{move: m}, errors.Join(err, r.done(ctx, tx))
	}
	paused, err := outbox.Paused(ctx, tx, domain.EffectCharge)
	if err != nil || paused {
		return decision{at: progress{after: pauseCheck}}, err
	}
	op, ordinal := nextSend(d)
	if c := d.find(op, ordinal); c != nil {
		switch {
		case c.dead(d.now, p.config.Horizon):
			return p.handOver(ctx, tx, d, e, r, d.payment.Version, "the key of "+string(op)+" can be sent no more, and its outcome is unknown")
		case !c.open():
			return decision{at: progress{look: true}}, nil // it ran; sending it again would only replay its first answer
		case r.maxSends > 0 && e.Attempts >= r.maxSends:
			return p.handOver(ctx, tx, d, e, r, d.payment.Version, "no answer to any of the sends made so far")
		}
		if rest := p.backoff(e.Attempts) - d.now.Sub(c.LastSentAt); rest > 0 {
			return decision{at: progress{after: rest}}, nil // a twin has just sent it
		}
	}
	s, err := p.record(ctx, tx, d, e, op, ordinal)
	return decision{send: s}, err
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
// version is what the payment's was when the doubt arose: whoever has settled something since knows better, and whoever
// has taken the effect owns it.
func (p *Payments) handOver(ctx context.Context, tx pgx.Tx, d dossier, e outbox.Effect, r role, version int64, why string) (decision, error) {
	e, err := outbox.LockEffect(ctx, tx, e.ID)
	if err != nil || e.Status != r.owns {
		return decision{}, err
	}
	m, err := p.settle(ctx, tx, d, domain.Observation{Fact: domain.FactDoubt, Version: version}, nil)
	if err != nil || m.Stale {
		return decision{at: progress{again: m.Stale}}, err
	}
	var due time.Duration // a worker's doubt is looked at now, a reconciler's own after a while
	if r.owns == domain.EffectInDoubt {
		due = p.backoff(e.Attempts + 1)
	}
	err = outbox.Doubt(ctx, tx, e.ID, why, due)
	return decision{move: m}, errors.Join(err, r.done(ctx, tx))
}

// lookStep reads the intent and settles what it shows. If that is nothing new, more of the worker's sends prove nothing:
// the reconciler goes on.
func (p *Payments) lookStep(ctx context.Context, e outbox.Effect, r role) (progress, error) {
	s, err := p.look(ctx, e.BookingID, r.complete)
	switch {
	case errors.Is(err, errUnread):
		wait := p.backoff(e.Attempts + 1)
		return progress{after: wait}, outbox.Note(ctx, p.pool, e.ID, unread(err), wait)
	case err != nil:
		return progress{}, err
	case s.move.Stale:
		return progress{again: true}, nil
	case !s.unresolved():
		return progress{}, nil
	}
	var d decision
	err = postgres.InTx(ctx, p.pool, func(tx pgx.Tx) error {
		dossier, err := lock(ctx, tx, e.BookingID)
		if err != nil {
			return err
		}
		d, err = p.handOver(ctx, tx, dossier, e, r, s.version, "the intent shows "+shown(s.intent.Status)+", and its confirm has run")
		return err
	})
	return d.at, err
}

// shown names a status that is known; another may be anything.
func shown(s IntentStatus) string {
	if known(s) {
		return string(s)
	}
	return "a status that is not known here"
}
