package operator

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"holdfast/domain"
	"holdfast/internal/postgres"
	"holdfast/outbox"
	"holdfast/payments"
)

// Request is an act that waits for a second person.
type Request struct {
	ID        uuid.UUID        `json:"id"`
	Act       Act              `json:"act"`
	EffectID  *domain.EffectID `json:"effect_id,omitempty"`
	BookingID domain.BookingID `json:"booking_id"`
	Money     domain.Money     `json:"money"`
	By        outbox.Actor     `json:"by"`
	Reason    string           `json:"reason"`
	At        domain.Instant   `json:"at"`
	ExpiresAt domain.Instant   `json:"expires_at"`
	Status    RequestStatus    `json:"status"`
	DecidedBy outbox.Actor     `json:"decided_by,omitempty"`
	DecidedAt *domain.Instant  `json:"decided_at,omitempty"`
}

// RequestStatus is where a request stands.
type RequestStatus string

// The states of a request.
const (
	RequestOpen      RequestStatus = "open"
	RequestApproved  RequestStatus = "approved"  // and the act was done
	RequestWithdrawn RequestStatus = "withdrawn" // by either person
	RequestExpired   RequestStatus = "expired"
)

// Requests lists the requests that are open, the oldest first, or all, the newest first; at most 200.
func (d *Desk) Requests(ctx context.Context, all bool) ([]Request, error) {
	which := `WHERE status = 'open' AND expires_at > clock_timestamp() ORDER BY created_at, id LIMIT 200`
	if all {
		which = `ORDER BY created_at DESC, id DESC LIMIT 200`
	}
	found, err := requests(ctx, d.pool, which)
	if err != nil {
		return nil, busy(err)
	}
	list := make([]Request, 0, len(found))
	for _, r := range found {
		list = append(list, r.shown())
	}
	return list, nil
}

// Request reads one request. It returns domain.ErrNotFound if there is none.
func (d *Desk) Request(ctx context.Context, id uuid.UUID) (Request, error) {
	r, err := oneRequest(ctx, d.pool, id, ``)
	return r.shown(), busy(err)
}

// Approve does the act of an open request, which somebody else has asked for; it is refused as Do refuses, and then the request stays
// open. The audit row is the approving person's, and names both.
func (d *Desk) Approve(ctx context.Context, id uuid.UUID, by outbox.Actor, reason string) (Result, error) {
	if err := outbox.Demand(by, reason); err != nil {
		return Result{}, err
	}
	asked, err := oneRequest(ctx, d.pool, id, ``)
	if err == nil {
		err = asked.approvable(by)
	}
	if err != nil {
		return Result{}, busy(err)
	}
	r, err := d.prepare(ctx, asked.order(by, reason))
	if err != nil {
		return Result{}, busy(err)
	}
	r.second = approves
	done, err := d.commit(ctx, r, func(tx pgx.Tx) (Result, error) {
		again, err := oneRequest(ctx, tx, id, ` FOR UPDATE`)
		if err == nil {
			err = again.approvable(by)
		}
		if err == nil && r.refused != nil {
			err = r.refused
		}
		if err != nil {
			return Result{}, err
		}
		if err := decide(ctx, tx, id, RequestApproved, by, reason); err != nil {
			return Result{}, err
		}
		return d.carryOut(ctx, tx, r)
	})
	return done, err
}

// Withdraw ends an open request; its act is not done. Of one that is withdrawn or expired it changes nothing.
func (d *Desk) Withdraw(ctx context.Context, id uuid.UUID, by outbox.Actor, reason string) (Request, error) {
	if err := outbox.Demand(by, reason); err != nil {
		return Request{}, err
	}
	var after requestRow
	err := postgres.InTx(ctx, d.pool, func(tx pgx.Tx) error {
		r, err := oneRequest(ctx, tx, id, ` FOR UPDATE`)
		if err != nil {
			return err
		}
		if r.Status == RequestApproved {
			return r.decided()
		}
		if r.Status == RequestOpen {
			if err := decide(ctx, tx, id, RequestWithdrawn, by, reason); err != nil {
				return err
			}
			err := outbox.RecordAct(ctx, tx, outbox.Act{
				Actor: by, Action: "withdraw request", Effect: r.EffectID, Booking: &r.BookingID, Reason: reason,
				Before: requestState{ID: id, Status: RequestOpen}, After: requestState{ID: id, Status: RequestWithdrawn},
			})
			if err != nil {
				return err
			}
		}
		after, err = oneRequest(ctx, tx, id, ``)
		return err
	})
	return after.shown(), busy(err)
}

// askSecond makes a request of an act that lets more move than one person may let.
func (d *Desk) askSecond(ctx context.Context, tx pgx.Tx, r ready) (asked Result, is bool, err error) {
	if r.second == approves || r.Act != Replay && r.Act != Resolve {
		return Result{}, false, nil
	}
	tooMuch, err := d.aboveLimit(ctx, tx, []outbox.Effect{r.effect})
	money, is := tooMuch[r.effect.ID]
	if err != nil || !is {
		return Result{}, false, err
	}
	asked, err = d.ask(ctx, tx, r, money, money)
	return asked, true, err
}

// aboveLimit tells which of the effects move more money than one person may let move, and how much. What takes or gives no money by
// itself is not among them.
func (d *Desk) aboveLimit(ctx context.Context, q postgres.Querier, effects []outbox.Effect) (map[domain.EffectID]domain.Money, error) {
	if len(d.config.SecondPerson) == 0 {
		return nil, nil //nolint:nilnil // there is no limit
	}
	moves := slices.DeleteFunc(slices.Clone(effects), func(e outbox.Effect) bool {
		return e.Kind != domain.EffectCharge && e.Kind != domain.EffectRefund
	})
	stake, err := payments.AtStake(ctx, q, moves)
	maps.DeleteFunc(stake, func(_ domain.EffectID, m domain.Money) bool { return !d.tooMuch(m) })
	return stake, err
}

func (d *Desk) tooMuch(m domain.Money) bool {
	limit, is := d.config.SecondPerson[m.Currency]
	return is && m.Amount > limit
}

var errTooMuch = errors.New("a second person has to approve it")

// ask writes a request down, with its row of audit. The state in which it was asked for is what that row has made of it: an approval is
// refused if anything has happened since. money is what is approved, and together what it would come to with what went before.
func (d *Desk) ask(ctx context.Context, tx pgx.Tx, r ready, money, together domain.Money) (Result, error) {
	if r.second == alone {
		return Result{}, aloneRefused(together)
	}
	id := uuid.Must(uuid.NewV7())
	booking := r.booking()
	var effect *domain.EffectID
	state := "booking"
	if r.Act != Refund {
		effect, state = &r.effect.ID, string(r.effect.Status)
	}
	if err := r.record(ctx, tx, "request "+string(r.Act), effect, nil, requestState{ID: id, Status: RequestOpen, Money: &money}); err != nil {
		return Result{}, err
	}
	_, err := tx.Exec(ctx, `
		INSERT INTO operator_requests (id, act, effect_id, booking_id, asked, category, amount, currency, seen, actor, reason, expires_at)
		VALUES (@id, @act, @effect, @booking, @asked, @category, @amount, @currency, @seen, @actor, @reason, clock_timestamp() + @life::interval)`,
		pgx.NamedArgs{
			"id": id, "act": r.Act, "effect": effect, "booking": booking, "asked": r.Amount, "category": r.Category, "amount": money.Amount, "currency": money.Currency,
			"seen": outbox.SeenAfter(state, r.signature.ID), "actor": r.By, "reason": r.Reason, "life": d.config.RequestLife,
		})
	if err != nil {
		return Result{}, fmt.Errorf("write down a request: %w", err)
	}
	row, err := oneRequest(ctx, tx, id, ``)
	if err != nil {
		return Result{}, err
	}
	request := row.shown()
	done := Result{
		ActionID: r.signature.ID, Act: r.Act, EffectID: effect, BookingID: booking, Kind: r.effect.Kind, Request: &request,
		Said: fmt.Sprintf("%s: it waits until %s for somebody else to approve it, and nothing happens before", tooMuchForOne(together),
			time.Time(request.ExpiresAt).Format(time.RFC3339)),
	}
	if effect != nil {
		done.Before, done.After = outbox.SnapshotOf(r.effect), outbox.SnapshotOf(r.effect)
	}
	return done, nil
}

// aloneRefused is why one of many acts was not done: nobody is asked for each of them.
func aloneRefused(money domain.Money) *outbox.RefusedError {
	return &outbox.RefusedError{
		Code: outbox.RefusedSecondPerson, Reason: tooMuchForOne(money) + ": do it by itself, so that somebody else can approve it",
	}
}

func tooMuchForOne(money domain.Money) string {
	return payments.ForPeople(money) + " is more than one person may let move"
}

// requestState is what the audit keeps of a request.
type requestState struct {
	ID     uuid.UUID     `json:"request_id"`
	Status RequestStatus `json:"request_status"`
	Money  *domain.Money `json:"money,omitempty"`
}
