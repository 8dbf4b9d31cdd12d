package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"
)

// BookingRequest is what to book.
type BookingRequest struct {
	ResourceID    string            `json:"resource_id"`
	Start         time.Time         `json:"start"`                    // the first moment; at most microseconds
	End           time.Time         `json:"end"`                      // the first moment after it
	Quantity      int               `json:"quantity,omitempty"`       // places; 0 means 1
	ExpectedTotal *Money            `json:"expected_total,omitempty"` // what was shown to the customer; if the total is another: price_changed
	Customer      Customer          `json:"customer"`
	PaymentMethod string            `json:"payment_method"` // the payment provider's token for the card, never its number
	Metadata      map[string]string `json:"metadata,omitempty"`
}

// Money is an amount in minor units: 2500 EUR is 25.00 euros, 2500 JPY is 2500 yen.
type Money struct {
	Amount   int64  `json:"amount"`
	Currency string `json:"currency"` // ISO 4217
}

// Customer is who books.
type Customer struct {
	Name  string `json:"name"`
	Email string `json:"email"`
}

// Booking is a booking as the API shows it.
type Booking struct {
	ID            string            `json:"id"`
	Status        BookingStatus     `json:"status"`
	EndingReason  string            `json:"ending_reason"` // empty, or expire, cancel, refuse, doubt
	ResourceID    string            `json:"resource_id"`
	Start         time.Time         `json:"start"`
	End           time.Time         `json:"end"`
	Quantity      int               `json:"quantity"`
	Total         Money             `json:"total"`
	Customer      Customer          `json:"customer"`
	Metadata      map[string]string `json:"metadata"`
	HoldExpiresAt time.Time         `json:"hold_expires_at"` // the earliest moment at which an unpaid slot is released
	Payment       Payment           `json:"payment"`
	Cancellation  *Cancellation     `json:"cancellation"` // nil: its customer has not asked for it
	CreatedAt     time.Time         `json:"created_at"`
	EndedAt       *time.Time        `json:"ended_at"`
}

// Payment is how the money of a booking stands.
type Payment struct {
	Status      PaymentStatus `json:"status"`
	DeclineCode string        `json:"decline_code"`
	FailureCode string        `json:"failure_code"`
}

// BookingStatus is where a booking stands. The API's documentation says of each what it means and what to do.
type BookingStatus string

// Every status of a booking.
const (
	Held      BookingStatus = "held"      // the slot is the customer's until HoldExpiresAt, and waits for its money
	Confirmed BookingStatus = "confirmed" // paid
	Ending    BookingStatus = "ending"    // being given up; the slot is still taken, and it may still become confirmed
	Expired   BookingStatus = "expired"   // over, unpaid
	Cancelled BookingStatus = "cancelled" // over, at somebody's request
	Failed    BookingStatus = "failed"    // over, unpaid: the payment came to nothing
)

// Settled says that nothing changes any more unless somebody asks for it.
func (s BookingStatus) Settled() bool { return s != Held && s != Ending && s != "" }

// PaymentStatus is where a payment stands.
type PaymentStatus string

// Every status of a payment.
const (
	PaymentPending        PaymentStatus = "pending"
	PaymentProcessing     PaymentStatus = "processing"
	PaymentRequiresAction PaymentStatus = "requires_action" // the customer's bank wants the customer to authenticate
	PaymentDeclined       PaymentStatus = "declined"        // nothing was taken
	PaymentInDoubt        PaymentStatus = "in_doubt"        // the money may have been taken; the provider is being asked
	PaymentSucceeded      PaymentStatus = "succeeded"       // the money was taken, once
	PaymentCanceled       PaymentStatus = "canceled"        // nothing was taken, and nothing can be
	PaymentRefused        PaymentStatus = "refused"         // nothing was taken, and no other card would help
)

// Created is a booking as it was first answered, and how that answer came.
type Created struct {
	Booking Booking // as it was when it was made: a replay shows no later status; GetBooking does

	Key        Key       // under which it was made
	Replayed   bool      // made by an earlier send, of this call or of another
	KeyExpires time.Time // until when the key answers with this; after it, with idempotency_key_expired
	RequestID  string
	Tries      int
}

// CreateBooking books under a key, which names this intention; an empty one is replaced by a new one. The slot is then
// held, not paid: see WaitForBooking.
//
// It sends until there is a definite answer. On *UnknownError the booking may exist: call again with the same request
// and the error's Key. On *Problem with slot_unavailable or price_changed there is no booking and the key is spent; with
// idempotency_key_expired there never is a second booking, and the first, if the key made one, is at Location; with
// every other code nothing was booked and the key is free.
func (c *Client) CreateBooking(ctx context.Context, key Key, r BookingRequest) (Created, error) {
	body, err := json.Marshal(r)
	if err != nil {
		return Created{}, fmt.Errorf("create booking: nothing was sent: %w", err)
	}
	return c.decide(ctx, "create booking", key, call{path: "/v1/bookings", body: body, want: http.StatusCreated})
}

// decide makes a keyed call that is answered with a booking.
func (c *Client) decide(ctx context.Context, what string, key Key, of call) (Created, error) {
	if key == "" {
		key = NewKey()
	}
	if err := key.check(); err != nil {
		return Created{}, fmt.Errorf("%s: nothing was sent: %w", what, err)
	}
	made := Created{Key: key}
	of.method, of.key, of.read = http.MethodPost, key, read(&made.Booking, isBooking)
	a, err := c.do(ctx, of)
	if err != nil {
		return Created{}, fmt.Errorf("%s: %w", what, err)
	}
	made.Replayed = a.header.Get("Idempotency-Replayed") == "true"
	made.KeyExpires, _ = time.Parse(time.RFC3339, a.header.Get("Idempotency-Key-Expires")) // zero if a proxy has dropped it
	made.RequestID, made.Tries = a.header.Get("X-Request-Id"), a.tries
	return made, nil
}

// GetBooking reads a booking of this client. Another client's is answered like one that does not exist: not_found.
func (c *Client) GetBooking(ctx context.Context, id string) (Booking, error) {
	var b Booking
	_, err := c.do(ctx, call{
		method: http.MethodGet, path: "/v1/bookings/" + url.PathEscape(id), want: http.StatusOK, read: read(&b, isBooking),
	})
	if err != nil {
		return Booking{}, fmt.Errorf("get booking: %w", err)
	}
	return b, nil
}

// ChangePayment brings another card to a booking whose card was declined, under a key that names this card's try; an empty
// one is replaced by a new one. The booking that it returns waits for its charge. Of the errors what CreateBooking says
// holds: on *UnknownError the card may be taken, and the same key asks again. No card is ever charged beside another.
func (c *Client) ChangePayment(ctx context.Context, key Key, id, paymentMethod string) (Created, error) {
	body, err := json.Marshal(map[string]string{"payment_method": paymentMethod})
	if err != nil {
		return Created{}, fmt.Errorf("change payment: nothing was sent: %w", err)
	}
	return c.decide(ctx, "change payment", key, call{path: "/v1/bookings/" + url.PathEscape(id) + "/payment", body: body, want: http.StatusAccepted})
}

func isBooking(b *Booking) bool { return b.ID != "" && b.Status != "" }
