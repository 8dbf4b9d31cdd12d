package bookings

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"holdfast/domain"
	"holdfast/internal/postgres"
)

// Filter chooses among a client's bookings. A zero member leaves none out.
type Filter struct {
	Statuses   []domain.BookingStatus // any of them
	ResourceID domain.ResourceID
	From, To   time.Time        // half-open: bookings whose time overlaps it; each end may be open
	After      domain.BookingID // only those that come after this one, which need not pass the filter
	Limit      int              // at most so many; mandatory
}

// List reads a client's own bookings, the newest first, by their ids: those are made in order of time. A booking keeps
// its place whatever becomes of it, so that pages neither skip nor repeat one that was there when the first was read.
// A Filter.After that is not a booking of this client is domain.ErrNotFound (G9).
func List(ctx context.Context, q postgres.Querier, client domain.ClientID, f Filter) ([]domain.Booking, error) {
	before := uuid.Max
	if f.After != (domain.BookingID{}) {
		if _, err := Get(ctx, q, client, f.After); err != nil {
			return nil, err
		}
		before = f.After.UUID
	}
	statuses := make([]string, 0, len(f.Statuses))
	for _, s := range f.Statuses {
		statuses = append(statuses, string(s))
	}
	rows, err := q.Query(ctx, `
		SELECT `+bookingColumns+`
		  FROM bookings
		 WHERE client_id = @client AND id < @before
		   AND (cardinality(@statuses::text[]) = 0 OR status = ANY (@statuses))
		   AND (@resource::uuid IS NULL OR resource_id = @resource)
		   AND during && tstzrange(@from, @to, '[)')
		 ORDER BY id DESC
		 LIMIT @limit`,
		pgx.NamedArgs{
			"client": client.UUID, "before": before, "statuses": statuses,
			"resource": uuid.NullUUID{UUID: f.ResourceID.UUID, Valid: f.ResourceID != domain.ResourceID{}},
			"from":     bound(f.From), "to": bound(f.To), "limit": f.Limit,
		})
	if err != nil {
		return nil, fmt.Errorf("list bookings: %w", err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByName[bookingRow])
	if err != nil {
		return nil, fmt.Errorf("list bookings: %w", err)
	}
	list := make([]domain.Booking, 0, len(found))
	for _, row := range found {
		list = append(list, row.booking())
	}
	return list, nil
}

// bound is an end of a range; the zero time leaves it open.
func bound(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
