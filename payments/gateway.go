package payments

import (
	"context"
	"errors"
	"time"

	"holdfast/domain"
)

// Gateway is the payment provider, as narrow as the protocol needs it.
type Gateway interface {
	Sender
	Reader
	Lister
	Prompter
	EventLister
	Refunder
	Disputer
	Accountant
}

// Sender makes the sends that may change something. Send never retries on its own, since each send is recorded before
// it is made.
type Sender interface {
	// Freeze writes down the parameters of a send as they will go over the wire. They are stored with the key, and every
	// re-send uses the stored ones.
	Freeze(op domain.Operation, c Charge) Params
	// Send makes one send and tells what is known of it afterwards. It returns no error: whatever went wrong is an
	// outcome, and the zero outcome is Unknown.
	Send(ctx context.Context, c Call) Outcome
}

// Reader reads the provider's own word about one intent.
type Reader interface {
	// Livemode tells whether the key moves real money.
	Livemode() bool
	// Intent reads one intent. It returns ErrNoIntent if the account does not know the id, and any other error if
	// nothing was learned.
	Intent(ctx context.Context, id string) (Intent, error)
	// Charges lists all charges of an intent, newest first. An error means that the listing is incomplete.
	Charges(ctx context.Context, intentID string) ([]ProviderCharge, error)
}

// Lister finds intents whose id was lost.
type Lister interface {
	// IntentsCreated lists the intents created in [from, to] (provider's clock, whole seconds), newest first. An error
	// means that the listing is incomplete, and so proves nothing about what it lacks.
	IntentsCreated(ctx context.Context, from, to time.Time) ([]Intent, error)
}

// EventLister finds events that nobody has delivered.
type EventLister interface {
	// Events reads one page of the events of these types that were created in [from, to] (provider's clock, whole seconds),
	// newest first, and tells whether there are more. after is the id of the last event of the page before, or empty.
	// It returns ErrNoSuchEvent if the account does not know that one, and any other error if nothing was learned.
	Events(ctx context.Context, types []string, from, to time.Time, after string) (page []Event, more bool, err error)
}

// Refunder is what a refund needs beside Send.
type Refunder interface {
	// FreezeRefund is Freeze for a refund.
	FreezeRefund(r Refund) Params
	// Refunds lists all refunds of an intent's charges, whoever made them, newest first. An error means that the listing
	// is incomplete.
	Refunds(ctx context.Context, intentID string) ([]ProviderRefund, error)
}

// ErrNoIntent says that the provider's account does not know the intent: a wrong account, mode or id. It is never proof
// that no money moved.
var ErrNoIntent = errors.New("the provider's account does not know this intent")

// Params are the parameters of a send by their wire names, bracketed names included.
type Params map[string]string

// Charge is what an intent is made of.
type Charge struct {
	BookingID     domain.BookingID
	PaymentID     domain.PaymentID
	Total         domain.Money
	PaymentMethod string // the token that the customer sent
}

// Refund is money to be given back.
type Refund struct {
	ID        domain.RefundID
	Ordinal   int // of the intention: the next is made only once the provider has shown that the one before failed or never was
	BookingID domain.BookingID
	PaymentID domain.PaymentID
	IntentID  string
	Total     domain.Money
	Category  string // the provider's word for why: duplicate, fraudulent, requested_by_customer; may be empty
}

// ProviderRefund is a refund as the provider has it.
type ProviderRefund struct {
	ID          string
	IntentID    string
	Status      string // succeeded, pending, requires_action, failed, canceled
	Amount      domain.Money
	RefundID    string // from the metadata that we put there; empty: made by hand
	Ordinal     string // likewise
	FailureCode string
}

// The statuses of a ProviderRefund that end it. Any other is waited for.
const (
	RefundSucceeded = "succeeded"
	RefundFailed    = "failed"
	RefundCanceled  = "canceled"
)

// Call is one send.
type Call struct {
	Operation domain.Operation
	IntentID  string // empty for create
	Key       string // the idempotency key; never empty
	Params    Params
}

// Class is what is known of a send after it was made.
type Class uint8

// The classes of outcomes. The first is the zero value: whatever is not understood is unknown.
const (
	Unknown     Class = iota // it may have happened, may happen yet, or may never
	Executed                 // 2xx: Intent is set; of a refund, Refund
	Declined                 // 402: the card was declined; Intent is set where the provider embedded it
	KnownState               // refused because of the state the intent is in; Intent is set
	Rejected                 // 400 or 404: *this* send did nothing, and the same parameters never will
	Busy                     // 409 in use, or 429 lock_timeout: an earlier send, or another one, is still running
	NotExecuted              // 401, 403, other 429, or no byte of it was sent: *this* send did nothing; earlier ones are untold
	KeyMismatch              // another request owns the key: a bug of ours; never re-send
)

// String names the class as provider_calls.outcome and the logs do.
func (c Class) String() string {
	names := [...]string{"unknown", "executed", "declined", "known_state", "rejected", "busy", "not_executed", "key_mismatch"}
	if int(c) >= len(names) {
		return names[Unknown]
	}
	return names[c]
}

// Outcome is what came back from one send, or what is known without an answer. It holds nothing secret: no message of
// the provider, no client secret.
type Outcome struct {
	Class       Class
	Stored      bool // a 500: stored under the key, which will answer it for the rest of its life
	Replayed    bool // the provider's stored answer of an earlier send: a snapshot, which may be out of date
	Intent      *Intent
	Refund      *ProviderRefund
	HTTPStatus  int // 0: no answer
	RequestID   string
	Code        string // the provider's error code
	DeclineCode string
	Detail      string // for people; safe to store and log
}

// IntentStatus is the provider's word for where an intent stands. Others than these may come: they mean nothing to us.
type IntentStatus string

// The statuses that the protocol understands.
const (
	IntentRequiresPaymentMethod IntentStatus = "requires_payment_method"
	IntentRequiresConfirmation  IntentStatus = "requires_confirmation"
	IntentRequiresAction        IntentStatus = "requires_action"
	IntentProcessing            IntentStatus = "processing"
	IntentSucceeded             IntentStatus = "succeeded"
	IntentCanceled              IntentStatus = "canceled"
)

// Intent is the provider's object that makes at most one successful charge in its life.
type Intent struct {
	ID             string
	Status         IntentStatus
	Amount         domain.Money // in our minor units
	AmountReceived int64        // minor units
	PaymentMethod  string       // the provider's id of the attached method; empty after a decline
	LastError      *LastError
	PaymentID      string // from the metadata that we put there
	BookingID      string
	Livemode       bool
	Created        time.Time
}

// LastError is why the intent's newest confirm did not succeed.
type LastError struct {
	Code          string
	DeclineCode   string
	PaymentMethod string // the provider's id of the method that failed
}

// ProviderCharge is one attempt of the provider to take the money of an intent.
type ProviderCharge struct {
	ID     string
	Status string // succeeded, pending, failed
	Amount domain.Money
}

// The statuses of a ProviderCharge that matter to the protocol.
const (
	ChargeSucceeded = "succeeded"
	ChargePending   = "pending"
)
