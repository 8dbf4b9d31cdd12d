package httpapi

import (
	"holdfast/domain"
	"holdfast/payments"
)

// Booking is a booking as the API shows it. The accepting transaction writes the same document for a new booking
// (migrations, accept_booking): members, formats and all. What its statuses mean is told in one place: statuses.go.
type Booking struct {
	ID            domain.BookingID     `json:"id" format:"uuid"`
	Status        domain.BookingStatus `json:"status"`
	EndingReason  domain.EndingReason  `json:"ending_reason,omitempty"`
	ResourceID    domain.ResourceID    `json:"resource_id" format:"uuid"`
	Start         domain.Instant       `json:"start" format:"date-time" doc:"The first moment; UTC, like every time here."`
	End           domain.Instant       `json:"end" format:"date-time" doc:"The first moment after it."`
	Quantity      int                  `json:"quantity" doc:"How many places."`
	Total         domain.Money         `json:"total" doc:"Minor units: 2500 is 25.00 EUR, but 2500 JPY."`
	Customer      customer             `json:"customer"`
	Metadata      map[string]string    `json:"metadata" doc:"Your own notes, as they came."`
	HoldExpiresAt domain.Instant       `json:"hold_expires_at" format:"date-time" doc:"The earliest moment at which an unpaid slot is released."`
	Payment       Payment              `json:"payment"`
	Cancellation  *Cancellation        `json:"cancellation,omitempty" doc:"Once its customer has asked for it."`
	CreatedAt     domain.Instant       `json:"created_at" format:"date-time"`
	EndedAt       *domain.Instant      `json:"ended_at,omitempty" format:"date-time"`
}

// Payment is a booking's payment as its owner sees it.
type Payment struct {
	Status      domain.PaymentStatus `json:"status"`
	DeclineCode string               `json:"decline_code,omitempty" doc:"The provider's code for why the card was declined, such as insufficient_funds."`
	FailureCode string               `json:"failure_code,omitempty" doc:"The provider's code for why the payment was declined or refused, such as card_declined or resource_missing."`
	Refunded    int64                `json:"amount_refunded,omitempty" doc:"How much of the total went back, in its minor units; absent: nothing."`
	Refunding   int64                `json:"amount_refund_pending,omitempty" doc:"How much more of it is on its way back."`
	Dispute     *Dispute             `json:"dispute,omitempty" doc:"The cardholder's bank disputes the money that was taken, or has. Of several the one that is open, else the newest."`
}

// Dispute is a dispute as the owner of the booking sees it. Its words are the provider's.
type Dispute struct {
	Status domain.DisputeStatus `json:"status"`
	Amount domain.Money         `json:"amount" doc:"What is disputed, in minor units."`
	Reason string               `json:"reason" doc:"What the cardholder told the bank, in the provider's words, such as fraudulent or product_not_received; empty if the provider does not say."`
}

// Cancellation is a customer's cancellation, as it was decided when it was asked for.
type Cancellation struct {
	RequestedAt domain.Instant `json:"requested_at" format:"date-time" doc:"When the customer asked first."`
	Refund      domain.Money   `json:"refund" doc:"What goes back of the total by the booking's policy, as of that moment. While the booking is ending: if it turns out to be paid."`
}

func showCancellation(v payments.View) *Cancellation {
	asked := v.Booking.Cancellation
	if asked == nil {
		return nil
	}
	c := Cancellation{RequestedAt: domain.Instant(asked.RequestedAt), Refund: asked.Refund}
	if v.Payment.Status.Closed() && v.Payment.Status != domain.PaymentSucceeded {
		c.Refund.Amount = 0 // it was never paid
	}
	return &c
}

func showBooking(v payments.View) Booking {
	b := v.Booking
	metadata := b.Metadata
	if metadata == nil {
		metadata = map[string]string{}
	}
	return Booking{
		ID: b.ID, Status: b.Status, EndingReason: b.EndingReason, ResourceID: b.ResourceID,
		Start: domain.Instant(b.Start), End: domain.Instant(b.End), Quantity: b.Quantity, Total: b.Total,
		Customer: customer{Name: b.CustomerName, Email: b.CustomerEmail}, Metadata: metadata,
		HoldExpiresAt: domain.Instant(b.HoldExpiresAt),
		Payment:       showPayment(v.Payment), Cancellation: showCancellation(v),
		CreatedAt: domain.Instant(b.CreatedAt), EndedAt: (*domain.Instant)(b.EndedAt),
	}
}

func showPayment(v payments.PaymentView) Payment {
	p := Payment{
		Status: v.Status, DeclineCode: v.DeclineCode, FailureCode: v.FailureCode, Refunded: v.Refunded, Refunding: v.Refunding,
	}
	if d := v.Dispute; d != nil {
		p.Dispute = &Dispute{Status: d.Status, Amount: d.Amount, Reason: d.Reason}
	}
	return p
}
