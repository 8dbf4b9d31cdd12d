package payments

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast/domain"
	"holdfast/internal/bookings"
	"holdfast/internal/postgres"
)

// CancelOutcome is what cancelling a booking does, or why it does nothing.
type CancelOutcome string

// The outcomes.
const (
	CancelNow       CancelOutcome = "cancelled"      // over at once, and the slot is free
	CancelEnding    CancelOutcome = "ending"         // the slot stays taken until the provider has proved what became of the money
	CancelUnchanged CancelOutcome = "unchanged"      // it is over, or being cancelled, already
	CancelTooLate   CancelOutcome = "booking_over"   // refused: a paid booking whose end has passed stays as it is
	CancelRefused   CancelOutcome = "refund_changed" // refused: not the refund that was expected
)

// CancelOutcomes lists every outcome that a preview can have.
func CancelOutcomes() []CancelOutcome {
	return []CancelOutcome{CancelNow, CancelEnding, CancelUnchanged, CancelTooLate}
}

// Cancellation is what cancelling a booking does at a moment, by the database's clock.
type Cancellation struct {
	Booking domain.BookingID
	At      time.Time
	Outcome CancelOutcome
	Refund  domain.Money // what goes back of the total, if it is paid; where it was asked for already: what was decided then
	Percent int
	Until   time.Time // the last moment at which this holds; zero: for good
	Then    []CancelTerm
}

// CancelTerm is what cancelling gives back later on: each follows on the one before it.
type CancelTerm struct {
	Refund  domain.Money
	Percent int
	Until   time.Time // zero: for good
}

// Cancellation tells what cancelling a client's own booking now would do. Nothing is changed, and nothing is promised: what
// counts is the moment at which Desk.Cancel decides. Another client's booking is domain.ErrNotFound.
func (w *Viewer) Cancellation(ctx context.Context, client domain.ClientID, id domain.BookingID) (Cancellation, error) {
	var c Cancellation
	err := w.asOfOneMoment(ctx, func(tx pgx.Tx) error {
		booking, err := bookings.Get(ctx, tx, client, id)
		if err != nil {
			return err
		}
		d := dossier{booking: booking}
		var b pgx.Batch
		readPayment(&b, id, ``, &d.payment)
		if d, err = d.checked(postgres.Send(ctx, tx, &b)); err != nil {
			return err
		}
		c, err = d.cancellation(ctx, tx)
		return err
	})
	if err != nil {
		return Cancellation{}, fmt.Errorf("show what cancelling booking %s would do: %w", id, err)
	}
	return c, nil
}

// cancellation says what the customer's cancellation of d does at d.now.
func (d dossier) cancellation(ctx context.Context, tx pgx.Tx) (Cancellation, error) {
	c := Cancellation{Booking: d.booking.ID, At: d.now, Refund: domain.Money{Currency: d.booking.Total.Currency}}
	m := domain.Cancel(d.state())
	switch {
	case d.booking.Status == domain.BookingConfirmed && !d.now.Before(d.booking.End):
		c.Outcome = CancelTooLate
		return c, nil
	case !m.Changed:
		c.Outcome = CancelUnchanged
		if d.booking.Cancellation != nil {
			c.Refund = d.booking.Cancellation.Refund
		}
		return c, nil
	case m.Release:
		c.Outcome = CancelNow
	default:
		c.Outcome = CancelEnding
	}
	var step int64
	balance := Balance{Refundable: d.booking.Total.Amount}
	var b pgx.Batch
	bookings.ReadStep(&b, d.booking.Total.Currency, &step)
	if d.booking.Status == domain.BookingConfirmed {
		ReadBalance(&b, d.booking.ID, &balance)
	}
	if err := postgres.Send(ctx, tx, &b); err != nil {
		return c, err
	}
	for i, t := range d.booking.RefundPolicy.Terms(d.booking.Start, d.now) {
		refund := t.Of(d.booking.Total, step)
		refund.Amount = min(refund.Amount, balance.Refundable)
		if i == 0 {
			c.Refund, c.Percent, c.Until = refund, t.Percent, t.Until
			continue
		}
		c.Then = append(c.Then, CancelTerm{Refund: refund, Percent: t.Percent, Until: t.Until})
	}
	return c, nil
}
