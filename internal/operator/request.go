package operator

import (
	"context"

	"github.com/google/uuid"

	"holdfast/domain"
	"holdfast/outbox"
)

// Request is an act that waits for a second person.
type Request struct {
	ID        uuid.UUID        `json:"id"`
	Act       Act              `json:"act"`
	EffectID  *domain.EffectID `json:"effect_id,omitempty"`
	BookingID domain.BookingID `json:"booking_id"`
	Money     domain.Money     `json:"money"`
	By        outbox.Actor     `json:"by"`
	Reason    string           `json:"reason"`
	At        domain.Instant   `json:"at"`
	ExpiresAt domain.Instant   `json:"expires_at"`
	Status    RequestStatus    `json:"status"`
	DecidedBy outbox.Actor     `json:"decided_by,omitempty"`
	DecidedAt *domain.Instant  `json:"decided_at,omitempty"`
}

// RequestStatus is where a request stands.
type RequestStatus string

// The states of a request.
const (
	RequestOpen      RequestStatus = "open"
	RequestApproved  RequestStatus = "approved"  // and the act was done
	RequestWithdrawn RequestStatus = "withdrawn" // by either person
	RequestExpired   RequestStatus = "expired"
)

// Requests lists the requests that are open, the oldest first, or all, the newest first; at most 200.
func (d *Desk) Requests(ctx context.Context, all bool) ([]Request, error) { return nil, errNotBuilt }

// Approve does the act of an open request, which somebody else has asked for; it is refused as Do refuses. The audit row names both.
func (d *Desk) Approve(ctx context.Context, id uuid.UUID, by outbox.Actor, reason string) (Result, error) {
	return Result{}, errNotBuilt
}

// Withdraw ends an open request. Withdrawing it again changes nothing.
func (d *Desk) Withdraw(ctx context.Context, id uuid.UUID, by outbox.Actor, reason string) (Request, error) {
	return Request{}, errNotBuilt
}
