package domain

import (
	"fmt"
	"slices"
)

// PaymentStatus is where the one payment of a booking stands. Refunded and disputed are no states of it: they are
// derived from their own rows, and can both be true.
type PaymentStatus string

// The states of a payment.
const (
	PaymentPending        PaymentStatus = "pending"
	PaymentProcessing     PaymentStatus = "processing"      // the provider has accepted and not decided
	PaymentRequiresAction PaymentStatus = "requires_action" // the customer must authenticate
	PaymentDeclined       PaymentStatus = "declined"        // this card; another may still pay while the hold lives
	PaymentInDoubt        PaymentStatus = "in_doubt"        // a send's outcome is unknown; the reconciler asks the provider
	PaymentSucceeded      PaymentStatus = "succeeded"
	PaymentCanceled       PaymentStatus = "canceled" // proved: never charged, and never will be
	PaymentRefused        PaymentStatus = "refused"  // a definite refusal that no card cures; no intent exists
)

// PaymentStatuses lists every state.
func PaymentStatuses() []PaymentStatus {
	return []PaymentStatus{
		PaymentPending, PaymentProcessing, PaymentRequiresAction, PaymentDeclined, PaymentInDoubt,
		PaymentSucceeded, PaymentCanceled, PaymentRefused,
	}
}

// Closed tells whether no further send may take money for this payment.
func (s PaymentStatus) Closed() bool {
	return slices.Contains([]PaymentStatus{PaymentSucceeded, PaymentCanceled, PaymentRefused}, s)
}

// RefundReason is why money goes back.
type RefundReason string

// The reasons.
const (
	RefundLateSuccess  RefundReason = "late_success" // it was taken although the booking had ended: all of it
	RefundCancellation RefundReason = "cancellation" // the customer has cancelled: what the booking's policy says
)

// Operation is a kind of send to the provider.
type Operation string

// The operations. Only a confirm takes money, only a refund gives it back.
const (
	OpCreate  Operation = "create"
	OpUpdate  Operation = "update"
	OpConfirm Operation = "confirm"
	OpCancel  Operation = "cancel"
	OpRefund  Operation = "refund"
)

// ProviderKey derives the provider's idempotency key of a send from durable identity alone. It never depends on an
// attempt, a job, a host, a token or the time, so that every worker of every deployment sends the same key for the same
// intention.
func ProviderKey(payment PaymentID, op Operation, ordinal int) string {
	return fmt.Sprintf("hf:%s:%s:%d", payment, op, ordinal)
}

// RefundKey is ProviderKey for a refund, whose durable identity is its own.
func RefundKey(refund RefundID, ordinal int) string {
	return fmt.Sprintf("hf:%s:%s:%d", refund, OpRefund, ordinal)
}
