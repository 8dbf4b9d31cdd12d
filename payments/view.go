package payments

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"
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
	Refunded    int64  // minor units that went back
	Refunding   int64  // minor units that are on their way back

	Dispute *domain.Dispute // one that is open, else the newest; nil: the money was never disputed

	intent string // the provider's id, for Actions
}

// Viewer shows payments to their owners. It can send nothing.
type Viewer struct{ pool *pgxpool.Pool }

// NewViewer makes a viewer.
func NewViewer(pool *pgxpool.Pool) *Viewer { return &Viewer{pool: pool} }

// View reads a client's own booking and its payment as of one moment. Another client's booking is domain.ErrNotFound,
// as if it did not exist (G9).
func (w *Viewer) View(ctx context.Context, client domain.ClientID, id domain.BookingID) (View, error) {
	var v View
	err := w.asOfOneMoment(ctx, func(tx pgx.Tx) error {
		var err error
		v, err = view(ctx, tx, client, id)
		return err
	})
	if err != nil {
		return View{}, fmt.Errorf("show booking %s: %w", id, err)
	}
	return v, nil
}

func view(ctx context.Context, tx pgx.Tx, client domain.ClientID, id domain.BookingID) (View, error) {
	booking, err := bookings.Get(ctx, tx, client, id)
	if err != nil {
		return View{}, err
	}
	var row payment
	var given []given
	var b pgx.Batch
	var disputes []disputeRow
	readPayment(&b, id, ``, &row)
	readDisputes(&b, []uuid.UUID{id.UUID}, &disputes)
	readGiven(&b, []uuid.UUID{id.UUID}, &given)
	err = postgres.Send(ctx, tx, &b)
	return View{Booking: booking, Payment: show(row, disputes, given)}, err
}

// given is what went back of a booking's money, and what is on its way.
type given struct {
	BookingID uuid.UUID
	Succeeded int64
	Pending   int64
}

// readGiven queues a reading of what was given back of the bookings of which anything was.
func readGiven(b *pgx.Batch, ids []uuid.UUID, into *[]given) {
	postgres.All(b, "read what was given back", into, `
		SELECT p.booking_id, coalesce(sum(f.amount) FILTER (WHERE f.status = 'succeeded'), 0)::bigint AS succeeded,
		       coalesce(sum(f.amount) FILTER (WHERE f.status = 'pending'), 0)::bigint AS pending
		  FROM payments p JOIN refunds f ON f.payment_id = p.id
		 WHERE p.booking_id = ANY ($1)
		 GROUP BY p.booking_id`, ids)
}

// List reads a client's own bookings, each with its payment, the newest first and as of one moment. See bookings.List.
func (w *Viewer) List(ctx context.Context, client domain.ClientID, f bookings.Filter) ([]View, error) {
	var list []View
	err := w.asOfOneMoment(ctx, func(tx pgx.Tx) error {
		found, err := bookings.List(ctx, tx, client, f)
		if err != nil {
			return err
		}
		ids := make([]uuid.UUID, 0, len(found))
		for _, booking := range found {
			ids = append(ids, booking.ID.UUID)
		}
		var rows []payment
		var disputes []disputeRow
		var back []given
		var b pgx.Batch
		readPayments(&b, ids, &rows)
		readDisputes(&b, ids, &disputes)
		readGiven(&b, ids, &back)
		if err := postgres.Send(ctx, tx, &b); err != nil {
			return err
		}
		of := make(map[uuid.UUID]payment, len(rows))
		for _, row := range rows {
			of[row.BookingID] = row
		}
		list = make([]View, 0, len(found))
		for _, booking := range found {
			list = append(list, View{Booking: booking, Payment: show(of[booking.ID.UUID], disputes, back)})
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("show the bookings of client %s: %w", client, err)
	}
	return list, nil
}

func (w *Viewer) asOfOneMoment(ctx context.Context, read func(tx pgx.Tx) error) error {
	return pgx.BeginTxFunc(ctx, w.pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, read)
}

// show takes from the disputes and refunds of some payments what this one's owner sees.
func show(row payment, disputes []disputeRow, back []given) PaymentView {
	v := PaymentView{Status: row.Status, DeclineCode: row.DeclineCode, FailureCode: row.FailureCode, intent: row.ProviderIntentID}
	for _, d := range disputes {
		if d.PaymentID == row.ID {
			seen := d.dispute()
			v.Dispute = &seen
		}
	}
	if i := slices.IndexFunc(back, func(g given) bool { return g.BookingID == row.BookingID }); i >= 0 {
		v.Refunded, v.Refunding = back[i].Succeeded, back[i].Pending
	}
	return v
}
