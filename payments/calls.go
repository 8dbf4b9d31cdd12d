package payments

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"holdfast/domain"
	"holdfast/internal/postgres"
	"holdfast/outbox"
)

// send is a send as it was recorded, committed before it is made.
type send struct {
	call       Call
	ordinal    int
	sends      int           // of this key, this one included
	attempts   int           // at this effect, this one included
	version    int64         // the payment's, raised by the record: what the answer proves, it proves as of this
	age        time.Duration // of the key's first send when this one was recorded, by the database's clock
	recordedAt time.Time     // by this process's clock, for measuring only
}

// record queues the record of a send: its key, its frozen parameters, and that nothing observed before it speaks of it.
// What it returns is whole once the batch was sent, and the send may be made only once its transaction has committed.
// Without an effect no attempt is counted.
func (p *Payments) record(b *pgx.Batch, d dossier, op domain.Operation, ordinal int) *send {
	return recordAs(b, d, op, ordinal, uuid.Nil, domain.ProviderKey(d.id(), op, ordinal), p.gateway.Freeze(op, d.charge()))
}

// recordAs is record with a key and parameters that are not the payment's own, but a refund's.
func recordAs(b *pgx.Batch, d dossier, op domain.Operation, ordinal int, refund uuid.UUID, key string, params Params) *send {
	s := &send{
		call:    Call{Operation: op, IntentID: d.payment.ProviderIntentID},
		ordinal: ordinal, attempts: d.effect.Attempts + 1, recordedAt: time.Now(),
	}
	b.Queue(`
		INSERT INTO provider_calls AS c (payment_id, operation, ordinal, key, params, refund_id, first_sent_at, last_sent_at)
		VALUES ($1, $2, $3, $4, $5, nullif($6, '00000000-0000-0000-0000-000000000000'::uuid), clock_timestamp(), clock_timestamp())
		ON CONFLICT ON CONSTRAINT provider_calls_pkey
		DO UPDATE SET sends = c.sends + 1, last_sent_at = clock_timestamp()
		 WHERE (c.payment_id, c.operation, c.ordinal) = (excluded.payment_id, excluded.operation, excluded.ordinal)
		   AND c.refund_id IS NOT DISTINCT FROM excluded.refund_id -- else the parameters of something else would be sent
		RETURNING key, params, sends, extract(epoch FROM clock_timestamp() - first_sent_at)::float8`,
		d.payment.ID, op, ordinal, key, params, refund,
	).QueryRow(func(row pgx.Row) error {
		var seconds float64
		err := row.Scan(&s.call.Key, &s.call.Params, &s.sends, &seconds)
		if errors.Is(err, pgx.ErrNoRows) {
			err = errKeyTaken
		}
		if err != nil {
			return fmt.Errorf("record the send %s: %w", key, err)
		}
		s.age = time.Duration(seconds * float64(time.Second))
		return nil
	})
	b.Queue(`UPDATE payments SET version = version + 1, updated_at = clock_timestamp() WHERE id = $1 RETURNING version`,
		d.payment.ID,
	).QueryRow(func(row pgx.Row) error {
		if err := row.Scan(&s.version); err != nil {
			return fmt.Errorf("raise the version for the send %s: %w", key, err)
		}
		return nil
	})
	if d.effect.ID != (domain.EffectID{}) {
		outbox.CountAttempt(b, d.effect.ID)
	}
	return s
}

// errKeyTaken says that a key which is ours by derivation is another send's: nothing may be sent under it.
var errKeyTaken = errors.New("the key belongs to another send")

// transmit makes a recorded send, with no transaction open. It checks the horizon once more: a process can be stopped for
// hours between recording and sending, and the provider may have forgotten the key by then.
func (p *Payments) transmit(ctx context.Context, s send) Outcome {
	// The monotonic clock stands still while the machine sleeps, the wall clock may be set back: the larger counts.
	stalled := max(time.Since(s.recordedAt), time.Now().Round(0).Sub(s.recordedAt.Round(0)))
	if s.age+stalled >= p.config.Horizon {
		return Outcome{Class: NotExecuted, Detail: "not sent: the key is past its horizon"}
	}
	out := p.gateway.Send(ctx, s.call)
	p.config.Sends.WithLabelValues(string(s.call.Operation), out.Class.String()).Inc()
	level := slog.LevelInfo
	if out.Class == KeyMismatch {
		level = slog.LevelError // a bug of ours, or somebody else's requests under our keys
	}
	p.logger.Log(ctx, level, "provider send",
		"provider_key", s.call.Key, "sends", s.sends, "outcome", out.Class.String(), "http_status", out.HTTPStatus,
		"code", out.Code, "request_id", out.RequestID, "replayed", out.Replayed)
	return out
}

// save queues that an outcome is joined into what is known over all sends of its key. An answer that speaks of one send
// only (busy, not executed; rejected, unless it is still the only send) never clears what an earlier send left unknown.
func save(b *pgx.Batch, d dossier, s send, out Outcome) {
	known := ""
	switch out.Class {
	case Executed, Declined, KnownState, KeyMismatch:
		known = out.Class.String()
	case Rejected:
		if c := d.sent(s.call.Key); s.sends == 1 && c != nil && c.Sends == 1 {
			known = out.Class.String()
		}
	case Unknown, Busy, NotExecuted:
	}
	postgres.Exec(b, "save the outcome of a send", `
		UPDATE provider_calls
		   SET outcome = CASE WHEN $2 = '' THEN outcome ELSE $2 END,
		       stored_error = stored_error OR $3,
		       http_status = nullif($4, 0), error_code = nullif($5, ''), request_id = nullif($6, ''), replayed = $7
		 WHERE key = $1`,
		s.call.Key, known, out.Stored, out.HTTPStatus, out.Code, out.RequestID, out.Replayed)
}

// conclude queues what a read has proved about a call whose own answers left it unknown.
func conclude(b *pgx.Batch, d dossier, op domain.Operation, ordinal int, as Class) {
	if c := d.find(op, ordinal); c != nil {
		concludeCall(b, c, as)
	}
}

func concludeCall(b *pgx.Batch, c *call, as Class) {
	postgres.Exec(b, "conclude the outcome of a send", `UPDATE provider_calls SET outcome = $2 WHERE key = $1 AND outcome = 'unknown'`, c.Key, as.String())
}
