package operator

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"holdfast/domain"
	"holdfast/internal/bookings"
	"holdfast/internal/postgres"
	"holdfast/outbox"
	"holdfast/payments"
)

// Timeline is all that has happened to a booking, from our own tables: River forgets.
type Timeline struct {
	Booking TimelineBooking `json:"booking"`
	Entries []Entry         `json:"entries"` // oldest first
	More    bool            `json:"more"`    // there are older entries, which are left out
}

// TimelineBooking is the booking itself. It holds nothing personal.
type TimelineBooking struct {
	ID            domain.BookingID     `json:"id"`
	Client        string               `json:"client"` // its id
	Resource      string               `json:"resource"`
	Status        domain.BookingStatus `json:"status"`
	EndingReason  domain.EndingReason  `json:"ending_reason,omitempty"`
	PaymentStatus domain.PaymentStatus `json:"payment_status"`
	Total         domain.Money         `json:"total"`
	Start         domain.Instant       `json:"start"`
	End           domain.Instant       `json:"end"`
	HoldExpiresAt domain.Instant       `json:"hold_expires_at"`
}

// Entry is one thing that happened. Words that a person has written (a reason, a name) are passed on as they are.
type Entry struct {
	At     domain.Instant `json:"at"`    // by the database's clock
	What   string         `json:"what"`  // key, booking, effect, send, intent, charge, refund, dispute, webhook, event, act
	Title  string         `json:"title"` // such as "confirm sent"
	Detail string         `json:"detail,omitempty"`
	ID     string         `json:"id,omitempty"` // of the thing: an effect's, the provider's
	Facts  []Fact         `json:"facts"`
}

// Fact is a detail of an entry: a key, a request id, whether it was replayed.
type Fact struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

const mostEntries = 1000

// Timeline reads it as of one moment, the newest 1,000 entries. It returns domain.ErrNotFound if there is no such booking.
func (d *Desk) Timeline(ctx context.Context, id domain.BookingID) (Timeline, error) {
	var s story
	var b pgx.Batch
	bookings.Tell(&b, id, mostEntries, &s.booking)
	outbox.Tell(&b, id, mostEntries, &s.outbox)
	payments.Tell(&b, id, mostEntries, &s.money)
	err := pgx.BeginTxFunc(ctx, d.pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly},
		func(tx pgx.Tx) error { return postgres.Send(ctx, tx, &b) })
	if err != nil {
		return Timeline{}, fmt.Errorf("tell the story of booking %s: %w", id, err)
	}
	if s.booking.Booking.ID == uuid.Nil {
		return Timeline{}, domain.ErrNotFound
	}
	t := Timeline{Booking: s.head(), Entries: s.entries()}
	if n := len(t.Entries); n > mostEntries {
		t.Entries, t.More = t.Entries[n-mostEntries:], true
	}
	return t, nil
}

// story is what the owners of the tables tell.
type story struct {
	booking bookings.Story
	outbox  outbox.Story
	money   payments.Story
}

func (s story) head() TimelineBooking {
	b := s.booking.Booking
	return TimelineBooking{
		ID: domain.BookingID{UUID: b.ID}, Client: b.ClientID.String(), Resource: b.Resource, Status: b.Status, EndingReason: b.EndingReason,
		PaymentStatus: s.money.Payment.Status, Total: domain.Money{Amount: b.Amount, Currency: b.Currency},
		Start: domain.Instant(b.StartsAt), End: domain.Instant(b.EndsAt), HoldExpiresAt: domain.Instant(b.HoldExpiresAt),
	}
}

// entries are all of them, oldest first. Of what happened in the same instant the cause comes first.
func (s story) entries() []Entry {
	all := slices.Concat(s.keys(), s.milestones(), s.effects(), s.sends(), s.taken(), s.refunds(), s.disputes(), s.receipts(), s.actions())
	slices.SortStableFunc(all, func(x, y Entry) int {
		return cmp.Or(time.Time(x.At).Compare(time.Time(y.At)), cmp.Compare(rank(x.What), rank(y.What)))
	})
	return all
}

// rank orders causes before what they cause.
func rank(what string) int {
	return slices.Index([]string{"key", "booking", "effect", "send", "intent", "charge", "refund", "dispute", "webhook", "event", "act"}, what)
}
