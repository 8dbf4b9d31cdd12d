package payments

import (
	"context"
	"errors"
	"fmt"
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
	maxSends int                // 0: no bound but the back-off
	complete func(b *pgx.Batch) // completes the River job in the settling transaction; may be nil
}

func (r role) done(b *pgx.Batch) {
	if r.complete != nil {
		r.complete(b)
	}
}

// turn decides under the booking's lock, and writes in the same transaction what decide has queued: three round trips and
// the commit, however much it is.
func (p *Payments) turn(
	ctx context.Context, id domain.BookingID, effect domain.EffectID, decide func(b *pgx.Batch, d dossier) (decision, error),
) (decision, error) {
	var made decision
	err := postgres.InTx(ctx, p.pool, func(tx pgx.Tx) error {
		d, err := lock(ctx, tx, id, effect)
		if err != nil {
			return err
		}
		var b pgx.Batch
		if made, err = decide(&b, d); err != nil {
			return err
		}
		return postgres.Send(ctx, tx, &b)
	})
	if err != nil {
		return decision{}, err // above all: nothing is sent after a failed commit of the send's record
	}
	p.woken(made.move)
	if made.move.Refund == domain.RefundLateSuccess {
		p.logger.ErrorContext(ctx, alarmLateSuccess, "booking_id", id)
	}
	return made, nil
}

// note writes why an effect waits, and for how long.
func (p *Payments) note(ctx context.Context, e outbox.Effect, why string, wait time.Duration) (progress, error) {
	var b pgx.Batch
	outbox.Note(&b, e.ID, why, wait)
	return progress{after: wait}, postgres.Send(ctx, p.pool, &b)
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
	d, err := p.turn(ctx, e.BookingID, e.ID, func(b *pgx.Batch, d dossier) (decision, error) { return p.nextCharge(b, d, r) })
	if err != nil {
		return progress{}, err
	}
	return p.carryOut(ctx, e, r, d)
}

// carryOut makes the send that was decided, and the next one if settling it has decided on that: the transaction that
// commits the intent's id records the confirm.
func (p *Payments) carryOut(ctx context.Context, e outbox.Effect, r role, d decision) (progress, error) {
	for d.send != nil {
		s, out := *d.send, p.transmit(ctx, *d.send)
		var err error
		switch s.call.Operation {
		case domain.OpCreate:
			d, err = p.settleCreate(ctx, e, r, s, out)
		case domain.OpUpdate:
			d, err = p.settleUpdate(ctx, e, r, s, out)
		case domain.OpConfirm:
			d, err = p.settleConfirm(ctx, e, r, s, out)
		case domain.OpCancel, domain.OpRefund:
			err = fmt.Errorf("a charge has sent a %s", s.call.Operation)
		default: // its record stands as unknown, and whoever does send such a thing ends it
			err = fmt.Errorf("a charge has sent a %s", s.call.Operation)
		}
		if err != nil {
			return progress{}, err
		}
	}
	return d.at, nil
}

// nextCharge decides what may be sent next, and records it.
func (p *Payments) nextCharge(b *pgx.Batch, d dossier, r role) (decision, error) {
	if d.effect.Status != r.owns {
		return decision{}, nil // somebody else has carried it on
	}
	if d.booking.Status != domain.BookingHeld || d.payment.Status.Closed() {
		r.done(b)
		return decision{}, outbox.Finish(b, d.booking.ID, domain.EffectCharge, domain.EffectNotNeeded)
	}
	if !d.now.Before(d.booking.HoldExpiresAt) { // nobody has swept it yet: no send may follow all the same
		r.done(b)
		m, err := p.end(b, d, domain.EndExpire)
		return decision{move: m}, err
	}
	if d.paused {
		return decision{at: progress{after: pauseCheck}}, nil
	}
	op, ordinal := nextSend(d)
	if c := d.find(op, ordinal); c != nil {
		switch {
		case c.dead(d.now, p.config.Horizon):
			return p.handOver(b, d, r, d.payment.Version, "the key of "+string(op)+" can be sent no more, and its outcome is unknown")
		case !c.open() && op == domain.OpConfirm:
			return decision{at: progress{look: true}}, nil // it ran; sending it again would only replay its first answer
		case r.maxSends > 0 && d.effect.Attempts >= r.maxSends:
			return p.handOver(b, d, r, d.payment.Version, "no answer to any of the sends made so far")
		}
		if rest := p.backoff(d.effect.Attempts) - d.now.Sub(c.LastSentAt); rest > 0 {
			return decision{at: progress{after: rest}}, nil // a twin has just sent it
		}
	}
	if op == domain.OpConfirm && d.payment.ShownCard < d.payment.Card {
		return decision{at: progress{look: true}}, nil // what the intent holds now would be charged: see first
	}
	return decision{send: p.record(b, d, op, ordinal)}, nil
}

// nextSend says which send the payment needs: the create of its one intent, then, for every card but the first, the
// update that brings it to the intent, then the confirm of the newest card. A create takes the next ordinal only after a
// listing has shown that the one before it made nothing.
func nextSend(d dossier) (domain.Operation, int) {
	if d.payment.ProviderIntentID != "" {
		if u := d.find(domain.OpUpdate, d.payment.Card); d.payment.Card > 1 && (u == nil || u.open()) {
			return domain.OpUpdate, d.payment.Card
		}
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
func (p *Payments) handOver(b *pgx.Batch, d dossier, r role, version int64, why string) (decision, error) {
	if d.effect.Status != r.owns {
		return decision{}, nil
	}
	m, err := p.settle(b, d, domain.Observation{Fact: domain.FactDoubt, Version: version}, nil)
	if err != nil || m.Stale {
		return decision{at: progress{again: m.Stale}}, err
	}
	var due time.Duration // a worker's doubt is looked at now, a reconciler's own after a while
	if r.owns == domain.EffectInDoubt {
		due = p.backoff(d.effect.Attempts + 1)
	}
	outbox.Doubt(b, d.effect.ID, why, due)
	r.done(b)
	return decision{move: m}, nil
}

// lookStep reads the intent and settles what it shows. If that is nothing new, more of the worker's sends prove nothing:
// the reconciler goes on.
func (p *Payments) lookStep(ctx context.Context, e outbox.Effect, r role) (progress, error) {
	s, err := p.look(ctx, e.BookingID, r.complete)
	switch {
	case errors.Is(err, ErrUnread):
		return p.note(ctx, e, unread(err), p.backoff(e.Attempts+1))
	case err != nil:
		return progress{}, err
	case s.move.Stale, s.shown:
		return progress{again: true}, nil
	case !s.unresolved():
		return progress{}, nil
	}
	d, err := p.turn(ctx, e.BookingID, e.ID, func(b *pgx.Batch, d dossier) (decision, error) {
		return p.handOver(b, d, r, s.version, "the intent shows "+shown(s.intent.Status)+", which ends nothing")
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
