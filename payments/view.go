package payments

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"holdfast/domain"
	"holdfast/internal/bookings"
	"holdfast/internal/postgres"
)

// View is a booking with what its owner may know of its payment.
type View struct {
	Booking domain.Booking
	Payment PaymentView
}

// PaymentView is the payment as its owner sees it.
type PaymentView struct {
	Status      domain.PaymentStatus
	DeclineCode string // the provider's, of the newest declined card
	FailureCode string // the provider's, of a refusal or a decline: what the customer may be told
}

// Viewer shows payments to their owners. It can send nothing.
type Viewer struct{ pool *pgxpool.Pool }

// NewViewer makes a viewer.
func NewViewer(pool *pgxpool.Pool) *Viewer { return &Viewer{pool: pool} }

// View reads a client's own booking and its payment as of one moment. Another client's booking is domain.ErrNotFound,
// as if it did not exist (G9).
func (w *Viewer) View(ctx context.Context, client domain.ClientID, id domain.BookingID) (View, error) {
	var v View
	err := pgx.BeginTxFunc(ctx, w.pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		var err error
		if v.Booking, err = bookings.Get(ctx, tx, client, id); err != nil {
			return err
		}
		var row payment
		var b pgx.Batch
		readPayment(&b, id, ``, &row)
		err = postgres.Send(ctx, tx, &b)
		v.Payment = PaymentView{Status: row.Status, DeclineCode: row.DeclineCode, FailureCode: row.FailureCode}
		return err
	})
	if err != nil {
		return View{}, fmt.Errorf("show booking %s: %w", id, err)
	}
	return v, nil
}
