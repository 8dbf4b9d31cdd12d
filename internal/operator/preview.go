package operator

import (
	"context"
	"errors"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"holdfast/domain"
	"holdfast/internal/postgres"
	"holdfast/outbox"
	"holdfast/payments"
)

// Preview reads the provider, then says what an act would do: it does the act in a transaction that is rolled back, so that the two
// cannot differ. It changes nothing. amount is of Refund alone, minor units; 0: all.
func (d *Desk) Preview(ctx context.Context, act Act, on Target, amount int64) (Preview, error) {
	const someone = "somebody who looks first"
	r := ready{
		Order:     Order{Act: act, On: on, By: someone, Reason: someone, Amount: amount},
		signature: outbox.Signature{ID: uuid.Must(uuid.NewV7()), Actor: someone, Reason: someone},
	}
	r.looks = true
	v := Preview{Act: act}
	refused, err := d.lookFirst(ctx, &v, &r)
	if err != nil {
		return v, busy(err)
	}
	v.Seen = r.Seen
	if refused == nil {
		err := postgres.InTx(ctx, d.pool, func(tx pgx.Tx) error {
			done, err := d.carryOut(ctx, tx, r)
			if err != nil {
				return err
			}
			v.Would, v.SecondPerson = done.Said, done.Request != nil
			if done.Request != nil {
				v.Money = &done.Request.Money
			} else if done.Refund != nil && done.Refund.Refund != nil {
				v.Money = &done.Refund.Refund.Amount
			}
			return errOnlyLooked
		})
		if !errors.Is(err, errOnlyLooked) && !errors.As(err, &refused) {
			return v, busy(err)
		}
	}
	if refused != nil {
		v.Refusal = refused.Reason
	}
	v.Allowed = refused == nil
	return v, nil
}

// lookFirst reads how the target stands and what the provider shows. What it could not read is a refusal only of an act that needs it.
func (d *Desk) lookFirst(ctx context.Context, v *Preview, r *ready) (refused *outbox.RefusedError, err error) {
	err = d.look(ctx, r)
	switch {
	case errors.Is(err, payments.ErrUnread):
		refused = &outbox.RefusedError{Reason: "the act needs to know what the provider shows, and it could not be read: try again"}
		v.Unread = err.Error()
	case err != nil && !errors.As(err, &refused):
		return nil, err
	case r.refused != nil:
		refused = r.refused
	}
	return refused, d.describe(ctx, v, *r)
}

// errOnlyLooked undoes what a preview has tried.
var errOnlyLooked = errors.New("only looked")

// describe fills in what the act is done to, and what the provider shows of it.
func (d *Desk) describe(ctx context.Context, v *Preview, r ready) error {
	if r.On.Effect != (domain.EffectID{}) {
		shown, err := outbox.Show(ctx, d.pool, r.On.Effect, d.config.DeadAfter)
		if err != nil {
			return err
		}
		rows, err := withMoney(ctx, d.pool, []outbox.Row{shown.Effect})
		if err != nil {
			return err
		}
		v.Effect, v.Money = &rows[0], rows[0].AtStake
		if v.Money == nil {
			return nil
		}
	}
	switch {
	case v.Unread != "":
		return nil
	case r.reading != nil:
		v.Provider = &r.reading.Side
		return nil
	case d.money == nil:
		v.Unread = "this process has no key for the provider: preview it where STRIPE_API_KEY is set"
		return nil
	}
	side, err := d.money.Inspect(ctx, r.booking())
	switch {
	case errors.Is(err, payments.ErrUnread):
		v.Unread = err.Error()
	case err != nil:
		return err
	default:
		v.Provider = &side
	}
	return nil
}
