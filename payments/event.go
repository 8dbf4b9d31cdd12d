package payments

import (
	"errors"
	"slices"
	"time"
)

// Event is what the provider says has happened, as far as it is believed: which objects to look at. Where they stand is
// read from the provider, never from the event, which may be late, doubled or out of order.
type Event struct {
	ID         string
	Type       string
	Created    time.Time // by the provider's clock; it orders nothing
	Livemode   bool
	Key        string // the idempotency key of the request that caused it; empty if the provider or the customer did
	ObjectType string // of the object that it is about
	ObjectID   string
	IntentID   string // the intent that the object is or belongs to; may be empty
	BookingID  string // from the object's metadata, which anybody who shares the account may have written
	PaymentID  string // likewise
}

// Why a delivery is not taken for the provider's. Their texts are for logs: they hold nothing of the delivery.
var (
	// ErrSignature says that no signature fits the body under any secret.
	ErrSignature = errors.New("no signature fits the body under any of the secrets")
	// ErrSignatureAge says that the signature is right, and its time too far from now: a replay, or a wrong clock.
	ErrSignatureAge = errors.New("the signature's time is more than five minutes from now")
	// ErrEventUnreadable says that what the provider signed is no event.
	ErrEventUnreadable = errors.New("the signed body is no event")
)

// ErrNoSuchEvent says that a listing cannot go on after an event that the account does not know, or knows no more.
var ErrNoSuchEvent = errors.New("the provider's account does not know the event to go on after")

// The types of events that lead to a look at an intent.
const (
	eventSucceeded       = "payment_intent.succeeded"
	eventPaymentFailed   = "payment_intent.payment_failed"
	eventRequiresAction  = "payment_intent.requires_action"
	eventProcessing      = "payment_intent.processing"
	eventCanceled        = "payment_intent.canceled"
	eventChargeSucceeded = "charge.succeeded"
	eventChargeFailed    = "charge.failed"
)

// The types of events that lead to a look at an intent's disputes.
const (
	eventDisputeCreated    = "charge.dispute.created"
	eventDisputeUpdated    = "charge.dispute.updated"
	eventDisputeClosed     = "charge.dispute.closed"
	eventDisputeWithdrawn  = "charge.dispute.funds_withdrawn"
	eventDisputeReinstated = "charge.dispute.funds_reinstated"
)

func disputeEvents() []string {
	return []string{eventDisputeCreated, eventDisputeUpdated, eventDisputeClosed, eventDisputeWithdrawn, eventDisputeReinstated}
}

// refundEvents are the types of events that lead to a listing of an intent's refunds. The first two are of the charge, as older
// and newer API versions tell it.
func refundEvents() []string {
	return []string{"charge.refunded", "charge.refund.updated", "refund.created", "refund.updated", "refund.failed"}
}

// heeded are the types that are acted on. A charge's may be all that tells of a success behind a canceled intent.
// Every other type is kept and ignored: payouts.
func heeded() []string {
	return slices.Concat(disputeEvents(), refundEvents(), []string{
		eventSucceeded, eventPaymentFailed, eventRequiresAction, eventProcessing, eventCanceled, eventChargeSucceeded, eventChargeFailed,
	})
}

func (e Event) heeded() bool { return slices.Contains(heeded(), e.Type) }
