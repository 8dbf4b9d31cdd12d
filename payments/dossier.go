package payments

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"holdfast/domain"
	"holdfast/internal/bookings"
	"holdfast/internal/postgres"
	"holdfast/outbox"
)

// dossier is all that the protocol knows of one booking's money: the booking, its payment and every send ever made.
type dossier struct {
	booking domain.Booking
	payment payment
	calls   []call
	refunds []refund // all rows of the payment, oldest first; these two only where lockMoney has read them
	balance Balance
	effect  outbox.Effect // whose turn it is; zero where there is none
	paused  bool          // charges: an operator has said that no send may take money for now
	now     time.Time     // the database's clock, read after the locks were had
}

type payment struct {
	ID               uuid.UUID
	BookingID        uuid.UUID
	Amount           int64
	Currency         string
	PaymentMethod    string
	Card             int
	ProviderIntentID string
	ProviderMethodID string
	ShownCard        int
	Status           domain.PaymentStatus
	DeclineCode      string
	FailureCode      string
	Version          int64
	Watches          int
	Now              time.Time
}

// call is a row of provider_calls.
type call struct {
	Operation   domain.Operation
	Ordinal     int
	RefundID    uuid.UUID // of a refund's send; else zero
	Key         string
	Params      Params
	FirstSentAt time.Time
	LastSentAt  time.Time
	Sends       int
	Outcome     string
	StoredError bool
	HTTPStatus  int // of the newest answer; 0: none
	ErrorCode   string
	Replayed    bool // the newest answer is the one that the provider has stored under the key
}

const paymentColumns = `id, booking_id, amount, currency, payment_method, card, coalesce(provider_intent_id, '') AS provider_intent_id,
	coalesce(provider_method_id, '') AS provider_method_id, shown_card, status, coalesce(decline_code, '') AS decline_code,
	coalesce(failure_code, '') AS failure_code, version, watches,
	clock_timestamp() AS now`

// lock reads a dossier and keeps everybody else from moving the booking, its payment or the effect until the transaction
// ends. They are always locked in this order. It is one round trip of several statements: each sees what was committed
// while the one before waited for its lock, which one statement with joins would not.
func lock(ctx context.Context, tx pgx.Tx, id domain.BookingID, effect domain.EffectID) (dossier, error) {
	return lockAll(ctx, tx, id, effect, func(*pgx.Batch, *dossier) {})
}

// lockMoney is lock, and reads the payment's refunds and its balance: whoever decides on what is left of it needs them.
func lockMoney(ctx context.Context, tx pgx.Tx, id domain.BookingID, effect domain.EffectID) (dossier, error) {
	return lockAll(ctx, tx, id, effect, func(b *pgx.Batch, d *dossier) {
		readRefunds(b, id, &d.refunds)
		ReadBalance(b, id, &d.balance)
	})
}

func lockAll(ctx context.Context, tx pgx.Tx, id domain.BookingID, effect domain.EffectID, read func(*pgx.Batch, *dossier)) (dossier, error) {
	var d dossier
	var b pgx.Batch
	bookings.Lock(&b, id, &d.booking)
	readPayment(&b, id, `FOR UPDATE`, &d.payment)
	readCalls(&b, id, &d.calls)
	read(&b, &d)
	if effect != (domain.EffectID{}) {
		outbox.Lock(&b, effect, &d.effect)
		outbox.Paused(&b, domain.EffectCharge, &d.paused)
	}
	err := postgres.Send(ctx, tx, &b)
	return d.checked(err)
}

// peek reads what a look at the provider needs, without locks: the version may be older than the look, and is never newer.
func (p *Payments) peek(ctx context.Context, id domain.BookingID) (dossier, error) {
	var d dossier
	var b pgx.Batch
	readPayment(&b, id, ``, &d.payment)
	readCalls(&b, id, &d.calls)
	err := postgres.Send(ctx, p.pool, &b)
	return d.checked(err)
}

func readPayment(b *pgx.Batch, id domain.BookingID, locking string, into *payment) {
	postgres.One(b, "read a payment", func(row payment) { *into = row },
		`SELECT `+paymentColumns+` FROM payments WHERE booking_id = $1 `+locking, id.UUID)
}

// readPayments is readPayment for many bookings, in any order.
func readPayments(b *pgx.Batch, ids []uuid.UUID, into *[]payment) {
	postgres.All(b, "read payments", into, `SELECT `+paymentColumns+` FROM payments WHERE booking_id = ANY ($1)`, ids)
}

func readCalls(b *pgx.Batch, id domain.BookingID, into *[]call) {
	postgres.All(b, "read the sends of a payment", into, `
		SELECT operation, ordinal, coalesce(refund_id, '00000000-0000-0000-0000-000000000000') AS refund_id, key, params,
		       first_sent_at, last_sent_at, sends, outcome, stored_error,
		       coalesce(http_status, 0) AS http_status, coalesce(error_code, '') AS error_code, coalesce(replayed, false) AS replayed
		  FROM provider_calls
		 WHERE payment_id = (SELECT id FROM payments WHERE booking_id = $1)
		 ORDER BY operation, ordinal`, id.UUID)
}

// checked gives the dossier its clock, or says that there is none.
func (d dossier) checked(err error) (dossier, error) {
	if err == nil && d.payment.ID == uuid.Nil {
		err = domain.ErrNotFound
	}
	d.now = d.payment.Now
	return d, err
}

func (d dossier) id() domain.PaymentID { return domain.PaymentID{UUID: d.payment.ID} }

func (d dossier) state() domain.State {
	return domain.State{
		Booking: d.booking.Status, Reason: d.booking.EndingReason, Payment: d.payment.Status,
		HasIntent: d.payment.ProviderIntentID != "", Version: d.payment.Version,
	}
}

func (d dossier) charge() Charge {
	return Charge{
		BookingID: domain.BookingID{UUID: d.payment.BookingID}, PaymentID: d.id(),
		Total:         domain.Money{Amount: d.payment.Amount, Currency: d.payment.Currency},
		PaymentMethod: d.payment.PaymentMethod,
	}
}

// find returns the call of an operation with this ordinal, or nil if it was never sent. Refunds have ordinals of their own.
func (d dossier) find(op domain.Operation, ordinal int) *call {
	for i := range d.calls {
		if d.calls[i].Operation == op && d.calls[i].Ordinal == ordinal {
			return &d.calls[i]
		}
	}
	return nil
}

// sent returns the call with this key, or nil if it was never sent.
func (d dossier) sent(key string) *call {
	for i := range d.calls {
		if d.calls[i].Key == key {
			return &d.calls[i]
		}
	}
	return nil
}

// last returns the newest call of an operation, or nil.
func (d dossier) last(op domain.Operation) *call {
	var newest *call
	for i := range d.calls {
		if d.calls[i].Operation == op {
			newest = &d.calls[i]
		}
	}
	return newest
}

// open tells whether the call's outcome is still unknown.
func (c *call) open() bool { return c.Outcome == Unknown.String() }

// dead tells whether sending the call's key again is useless or forbidden: the provider has stored a 5xx under it, or a
// refusal, or it may have forgotten the key and would execute it as new.
func (c *call) dead(now time.Time, horizon time.Duration) bool {
	return c.StoredError || c.Outcome == KeyMismatch.String() || c.Outcome == Rejected.String() ||
		now.Sub(c.FirstSentAt) >= horizon
}
