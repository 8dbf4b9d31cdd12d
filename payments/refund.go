package payments

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast/domain"
	"holdfast/internal/postgres"
	"holdfast/outbox"
)

// Refund is the handler of refund jobs: it gives the money back that one refund effect is for. Any number of them may run
// at once, late, or twice for the same effect (G3): each send has the key of the refund's row and is recorded first, and a
// job that finds the refund settled does nothing.
func (p *Payments) Refund(ctx context.Context, job outbox.Job) (outbox.Verdict, error) {
	r := role{owns: domain.EffectPending, maxSends: p.config.MaxSends, complete: job.Complete}
	return p.run(ctx, job, r, p.refundStep)
}

// refundStep records the next send, makes it and settles its outcome.
func (p *Payments) refundStep(ctx context.Context, e outbox.Effect, r role) (progress, error) {
	made, err := p.refundTurn(ctx, e, r, nil, func(t refundCase) (decision, error) { return p.nextRefund(t) })
	if err != nil {
		return progress{}, err
	}
	return p.sendRefund(ctx, e, r, made)
}

// refundCase is all that a decision on one refund needs: what is known under the lock, and where what is decided is queued.
type refundCase struct {
	b *pgx.Batch
	d *dossier
	f *refund // a row of d.refunds
	r role

	begun int // refunds of a late success that were begun in the last hour
}

// last is the refund's newest send, or nil.
func (t refundCase) last() *call { return t.d.lastOf(*t.f) }

// refundLock serialises what counts refunds and begins one: an advisory lock, any number that nobody else uses.
const refundLock = 0x486f6c64_72656664

// refundTurn decides under the booking's lock on a refund whose effect is the role's. What is known of a send is saved in
// any case.
func (p *Payments) refundTurn(
	ctx context.Context, e outbox.Effect, r role, know func(b *pgx.Batch, d dossier), decide func(t refundCase) (decision, error),
) (decision, error) {
	var made decision
	err := postgres.InTx(ctx, p.pool, func(tx pgx.Tx) error {
		d, err := lockMoney(ctx, tx, e.BookingID, e.ID)
		if err != nil {
			return err
		}
		var b pgx.Batch
		if know != nil {
			know(&b, d)
		}
		if d.effect.Status != r.owns {
			return postgres.Send(ctx, tx, &b) // somebody else has carried it on
		}
		t := refundCase{b: &b, d: &d, f: d.refundOf(e.ID), r: r}
		if t.f == nil || t.f.Status == refundSucceeded {
			return fmt.Errorf("effect %s is of no refund that is to be made", e.ID)
		}
		if t.f.Reason == reasonLateSuccess && t.last() == nil {
			if t.begun, err = countLate(ctx, tx); err != nil {
				return err
			}
		}
		if made, err = decide(t); err != nil {
			return err
		}
		return postgres.Send(ctx, tx, &b)
	})
	if err != nil {
		return decision{}, err
	}
	p.woken(made.move)
	return made, nil
}

// countLate counts the refunds of late successes that were begun in the last hour. Nobody else counts or begins one until the
// transaction ends.
func countLate(ctx context.Context, tx pgx.Tx) (int, error) {
	var b pgx.Batch
	var n struct{ Begun int }
	postgres.Exec(&b, "count late refunds alone", `SELECT pg_advisory_xact_lock($1)`, int64(refundLock))
	postgres.One(&b, "count late refunds", func(row struct{ Begun int }) { n = row }, `
		SELECT count(*)::int AS begun
		  FROM provider_calls c JOIN refunds f ON f.id = c.refund_id
		 WHERE c.operation = 'refund' AND c.ordinal = 1 AND c.first_sent_at > clock_timestamp() - interval '1 hour'
		   AND f.reason = 'late_success'`)
	err := postgres.Send(ctx, tx, &b)
	return n.Begun, err
}

// nextRefund decides whether the refund may be sent now, and records it.
func (p *Payments) nextRefund(t refundCase) (decision, error) {
	last := t.last()
	switch {
	case last == nil && t.begun >= p.config.LateRefunds && !t.f.HeldBack:
		postgres.Exec(t.b, "hold a refund back", `UPDATE refunds SET held_back_at = clock_timestamp(), updated_at = clock_timestamp() WHERE id = $1`, t.f.ID)
		return p.parkRefund(t, fmt.Sprintf("%d refunds of late successes were begun within an hour; look why, then replay this one", t.begun))
	case last == nil:
		return p.beginKey(t, 1)
	case t.f.Status == refundFailed: // a person has replayed it
		return p.beginKey(t, last.Ordinal+1)
	case last.dead(t.d.now, p.config.Horizon) || !last.open():
		return p.doubtRefund(t, "sending the refund's key again would prove nothing", 0)
	case t.r.maxSends > 0 && t.d.effect.Attempts >= t.r.maxSends:
		return p.doubtRefund(t, "no answer to any of the refund's sends made so far", 0)
	}
	if rest := p.backoff(t.d.effect.Attempts) - t.d.now.Sub(last.LastSentAt); rest > 0 {
		return decision{at: progress{after: rest}}, nil // a twin has just sent it
	}
	return p.recordRefund(t, last.Ordinal), nil
}

// beginKey records the first send of the refund's next key, if what is left allows it and no dispute that we know of forbids it.
// Of what the customer is owed the rest goes back, should somebody have given back a part by hand.
func (p *Payments) beginKey(t refundCase, ordinal int) (decision, error) {
	left := t.d.left(t.f.ID)
	if t.d.balance.Contested {
		return p.refuseRefund(t, CodeDisputed)
	}
	if t.d.balance.Awaited && t.f.owed() && left < t.f.Amount { // else what comes back would be forgotten
		return p.refuseRefund(t, CodeDisputed)
	}
	if left == 0 || left < t.f.Amount && !t.f.owed() {
		return p.refuseRefund(t, codeExceeds)
	}
	t.f.Amount, t.f.Status, t.f.ProviderRefundID, t.f.FailureCode = min(t.f.Amount, left), refundPending, "", ""
	postgres.Exec(t.b, "begin a refund's next key", `
		UPDATE refunds
		   SET amount = $2, status = 'pending', provider_refund_id = NULL, failure_code = NULL, settled_at = NULL, watch_at = NULL,
		       updated_at = clock_timestamp()
		 WHERE id = $1`, t.f.ID, t.f.Amount)
	return p.recordRefund(t, ordinal), nil
}

// codeExceeds is our own refusal of a refund of more than is left, before anything is sent.
const codeExceeds = "refund_exceeds_captured"

// recordRefund queues the record of the refund's send.
func (p *Payments) recordRefund(t refundCase, ordinal int) decision {
	params := p.gateway.FreezeRefund(Refund{
		ID: t.f.id(), Ordinal: ordinal, BookingID: t.d.booking.ID, PaymentID: t.d.id(), IntentID: t.d.payment.ProviderIntentID,
		Total: t.f.total(), Category: t.f.Category,
	})
	return decision{send: recordAs(t.b, *t.d, domain.OpRefund, ordinal, t.f.ID, domain.RefundKey(t.f.id(), ordinal), params)}
}

// sendRefund makes a send that was decided, and brings its outcome home. What the answer proves by itself is what the
// provider's refund object says now; for everything else its refunds are listed.
func (p *Payments) sendRefund(ctx context.Context, e outbox.Effect, r role, made decision) (progress, error) {
	if made.send == nil {
		return made.at, nil
	}
	s, look := *made.send, false
	out := p.transmit(ctx, s)
	know := func(b *pgx.Batch, d dossier) { save(b, d, s, out) }
	settled, err := p.refundTurn(ctx, e, r, know, func(t refundCase) (decision, error) {
		last := t.last()
		switch {
		case last == nil || last.Key != s.call.Key: // it is another key's turn by now
			return decision{at: progress{again: true}}, nil
		case out.Class == Executed && !out.Replayed && out.Refund.of(*t.f, last):
			return p.refundShown(t, *out.Refund)
		case out.Class == Executed, out.Class == Rejected, out.Class == Declined, out.Class == KnownState:
			look = true
			return decision{}, nil
		case out.Class == Unknown && out.Stored, out.Class == KeyMismatch:
			return p.doubtRefund(t, "refund: "+out.Detail, 0)
		default:
			return p.later(t.b, e, s, out), nil
		}
	})
	if err == nil && look {
		return p.lookForRefund(ctx, e, r)
	}
	return settled.at, err
}

// doubtRefund gives the refund to the reconciler, which lists before it sends.
func (p *Payments) doubtRefund(t refundCase, why string, due time.Duration) (decision, error) {
	if t.r.owns == domain.EffectInDoubt {
		due = max(due, p.backoff(t.d.effect.Attempts+1))
	}
	outbox.Doubt(t.b, t.d.effect.ID, why, due)
	t.r.done(t.b)
	return decision{}, nil
}

// parkRefund leaves the refund to a person, and says so aloud.
func (p *Payments) parkRefund(t refundCase, why string) (decision, error) {
	p.cryOut(*t.d, *t.f, why)
	outbox.Park(t.b, t.d.effect.ID, why)
	t.r.done(t.b)
	return decision{}, nil
}

func (p *Payments) cryOut(d dossier, f refund, why string) {
	p.logger.Error("a refund is parked and needs a person: money that is the customer's is still with us",
		"booking_id", d.booking.ID, "refund_id", f.ID, "reason", why)
}
