package payments

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"holdfast/domain"
	"holdfast/internal/postgres"
	"holdfast/outbox"
)

// The reasons and states of a refund.
const (
	reasonLateSuccess = "late_success"

	refundPending   = "pending"
	refundSucceeded = "succeeded"
	refundFailed    = "failed"
)

// refund is a row of refunds, with what the ceiling needs.
type refund struct {
	ID               uuid.UUID
	Amount           int64
	Currency         string
	Reason           string
	Status           string
	HeldBack         bool // the ceiling has parked it before
	ProviderRefundID string
	Begun            int // refunds of a late success that were begun in the last hour
}

func (f refund) id() domain.RefundID { return domain.RefundID{UUID: f.ID} }

func (f refund) total() domain.Money { return domain.Money{Amount: f.Amount, Currency: f.Currency} }

// beginRefund queues a refund of all that was taken, and the effect that makes it. A payment succeeds once, so there is
// one for each, and the unique index says so.
func beginRefund(b *pgx.Batch, d dossier) {
	effect := outbox.Append(b, d.booking.ID, domain.EffectRefund)
	postgres.Exec(b, "begin a refund", `
		INSERT INTO refunds (id, payment_id, effect_id, amount, currency, reason, created_at, updated_at)
		SELECT $1, p.id, $2, coalesce(nullif(p.amount_received, 0), p.amount), p.currency, $3, clock_timestamp(), clock_timestamp()
		  FROM payments p WHERE p.id = $4`,
		domain.NewID[domain.RefundID](), effect, reasonLateSuccess, d.payment.ID)
}

// Refund is the handler of refund jobs: it gives the money back that one refund effect is for. Any number of them may run
// at once, late, or twice for the same effect (G3): each send has the key of the refund's row and is recorded first, the
// amount is all that was taken, which the provider gives back once, and a job that finds the refund settled does nothing.
func (p *Payments) Refund(ctx context.Context, job outbox.Job) (outbox.Verdict, error) {
	r := role{owns: domain.EffectPending, maxSends: p.config.MaxSends, complete: job.Complete}
	return p.run(ctx, job, r, p.refundStep)
}

// refundStep records the next send, makes it and settles its outcome.
func (p *Payments) refundStep(ctx context.Context, e outbox.Effect, r role) (progress, error) {
	made, err := p.refundTurn(ctx, e, r, nil, func(b *pgx.Batch, d dossier, f refund) (decision, error) { return p.nextRefund(b, d, f, r) })
	if err != nil {
		return progress{}, err
	}
	return p.sendRefund(ctx, e, r, made)
}

// refundLock serialises what counts refunds and begins one: an advisory lock, any number that nobody else uses.
const refundLock = 0x486f6c64_72656664

// refundTurn decides under the booking's lock on a refund that is still to be made and whose effect is the role's. What is
// known of a send is saved in any case.
func (p *Payments) refundTurn(
	ctx context.Context, e outbox.Effect, r role, know func(b *pgx.Batch, d dossier), decide func(b *pgx.Batch, d dossier, f refund) (decision, error),
) (decision, error) {
	var made decision
	err := postgres.InTx(ctx, p.pool, func(tx pgx.Tx) error {
		d, err := lock(ctx, tx, e.BookingID, e.ID)
		if err != nil {
			return err
		}
		var f refund
		var read, b pgx.Batch
		if know != nil {
			know(&b, d)
		}
		if d.effect.Status != r.owns {
			return postgres.Send(ctx, tx, &b) // somebody else has carried it on
		}
		postgres.Exec(&read, "count refunds alone", `SELECT pg_advisory_xact_lock($1)`, int64(refundLock))
		postgres.One(&read, "read a refund", func(row refund) { f = row }, `
			SELECT id, amount, currency, reason, status, held_back_at IS NOT NULL AS held_back,
			       coalesce(provider_refund_id, '') AS provider_refund_id,
			       (SELECT count(*) FROM provider_calls WHERE operation = 'refund' AND ordinal = 1
			           AND first_sent_at > clock_timestamp() - interval '1 hour')::int AS begun
			  FROM refunds WHERE effect_id = $1`, e.ID)
		if err := postgres.Send(ctx, tx, &read); err != nil {
			return err
		}
		if f.ID == uuid.Nil || f.Status == refundSucceeded {
			return fmt.Errorf("effect %s is of no refund that is to be made", e.ID)
		}
		if made, err = decide(&b, d, f); err != nil {
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

// nextRefund decides whether the refund may be sent now, and records it.
func (p *Payments) nextRefund(b *pgx.Batch, d dossier, f refund, r role) (decision, error) {
	last := d.last(domain.OpRefund)
	switch {
	case last == nil && f.Begun >= p.config.LateRefunds && !f.HeldBack:
		postgres.Exec(b, "hold a refund back", `UPDATE refunds SET held_back_at = clock_timestamp(), updated_at = clock_timestamp() WHERE id = $1`, f.ID)
		return p.parkRefund(b, d, f, r, fmt.Sprintf("%d refunds of late successes were begun within an hour; look why, then replay this one", f.Begun))
	case last == nil:
		return p.recordRefund(b, d, f, 1), nil
	case f.Status == refundFailed: // a person has replayed it
		postgres.Exec(b, "try a refund again", `UPDATE refunds SET status = 'pending', failure_code = NULL, updated_at = clock_timestamp() WHERE id = $1`, f.ID)
		return p.recordRefund(b, d, f, last.Ordinal+1), nil
	case last.dead(d.now, p.config.Horizon) || !last.open():
		return p.doubtRefund(b, d, r, "sending the refund's key again would prove nothing", 0)
	case r.maxSends > 0 && d.effect.Attempts >= r.maxSends:
		return p.doubtRefund(b, d, r, "no answer to any of the refund's sends made so far", 0)
	}
	if rest := p.backoff(d.effect.Attempts) - d.now.Sub(last.LastSentAt); rest > 0 {
		return decision{at: progress{after: rest}}, nil // a twin has just sent it
	}
	return p.recordRefund(b, d, f, last.Ordinal), nil
}

// recordRefund queues the record of the refund's send.
func (p *Payments) recordRefund(b *pgx.Batch, d dossier, f refund, ordinal int) decision {
	params := p.gateway.FreezeRefund(Refund{
		ID: f.id(), Ordinal: ordinal, BookingID: d.booking.ID, PaymentID: d.id(), IntentID: d.payment.ProviderIntentID, Total: f.total(),
	})
	return decision{send: recordAs(b, d, domain.OpRefund, ordinal, domain.RefundKey(f.id(), ordinal), params)}
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
	settled, err := p.refundTurn(ctx, e, r, know, func(b *pgx.Batch, d dossier, f refund) (decision, error) {
		switch {
		case out.Class == Executed && !out.Replayed:
			return p.refundShown(b, d, f, r, *out.Refund)
		case out.Class == Executed, out.Class == Rejected, out.Class == Declined, out.Class == KnownState:
			look = true
			return decision{}, nil
		case out.Class == Unknown && out.Stored, out.Class == KeyMismatch:
			return p.doubtRefund(b, d, r, "refund: "+out.Detail, 0)
		default:
			return p.later(b, e, s, out), nil
		}
	})
	if err == nil && look {
		return p.lookForRefund(ctx, e, r)
	}
	return settled.at, err
}

// doubtRefund gives the refund to the reconciler, which lists before it sends.
func (p *Payments) doubtRefund(b *pgx.Batch, d dossier, r role, why string, due time.Duration) (decision, error) {
	if r.owns == domain.EffectInDoubt {
		due = max(due, p.backoff(d.effect.Attempts+1))
	}
	outbox.Doubt(b, d.effect.ID, why, due)
	r.done(b)
	return decision{}, nil
}

// parkRefund leaves the refund to a person, and says so aloud.
func (p *Payments) parkRefund(b *pgx.Batch, d dossier, f refund, r role, why string) (decision, error) {
	p.logger.Error("a refund is parked and needs a person: the money of a booking that has ended is still with us",
		"booking_id", d.booking.ID, "refund_id", f.ID, "reason", why)
	outbox.Park(b, d.effect.ID, why)
	r.done(b)
	return decision{}, nil
}
