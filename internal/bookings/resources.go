package bookings

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // zones must not depend on the machine
	"unicode"
	"unicode/utf8"

	"github.com/bojanz/currency"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"holdfast/domain"
)

type resourceRow struct {
	ID           uuid.UUID
	Name         string
	TimeZone     string
	Places       int
	UnitMinutes  int
	Price        int64
	Currency     string
	Hold         time.Duration
	RefundPolicy domain.RefundPolicy
}

func (r resourceRow) resource() domain.Resource {
	return domain.Resource{
		ID: domain.ResourceID{UUID: r.ID}, Name: r.Name, TimeZone: r.TimeZone, Places: r.Places, UnitMinutes: r.UnitMinutes,
		Price: domain.Money{Amount: r.Price, Currency: r.Currency}, Hold: r.Hold, Refunds: r.RefundPolicy,
	}
}

const resourceColumns = `id, name, time_zone, places, unit_minutes, price, currency, hold, refund_policy`

// Resources lists what can be booked, oldest first: at most limit of those that come after one of them, or, with the
// zero id, from the beginning. An id that does not exist is domain.ErrNotFound. Resources are never deleted, so that no
// page skips one.
func (s *Service) Resources(ctx context.Context, after domain.ResourceID, limit int) ([]domain.Resource, error) {
	if after != (domain.ResourceID{}) {
		if _, err := s.Resource(ctx, after); err != nil {
			return nil, err
		}
	}
	rows, err := s.pool.Query(ctx, `
		SELECT `+resourceColumns+`
		  FROM resources
		 WHERE @first OR (created_at, id) > (SELECT created_at, id FROM resources WHERE id = @after)
		 ORDER BY created_at, id
		 LIMIT @limit`,
		pgx.NamedArgs{"first": after == domain.ResourceID{}, "after": after.UUID, "limit": limit})
	if err != nil {
		return nil, fmt.Errorf("list resources: %w", err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByName[resourceRow])
	if err != nil {
		return nil, fmt.Errorf("list resources: %w", err)
	}
	resources := make([]domain.Resource, 0, len(found))
	for _, r := range found {
		resources = append(resources, r.resource())
	}
	return resources, nil
}

// Resource reads one resource.
func (s *Service) Resource(ctx context.Context, id domain.ResourceID) (domain.Resource, error) {
	rows, err := s.pool.Query(ctx, `SELECT `+resourceColumns+` FROM resources WHERE id = $1`, id.UUID)
	if err != nil {
		return domain.Resource{}, fmt.Errorf("read a resource: %w", err)
	}
	row, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[resourceRow])
	if errors.Is(err, pgx.ErrNoRows) {
		return domain.Resource{}, domain.ErrNotFound
	}
	if err != nil {
		return domain.Resource{}, fmt.Errorf("read a resource: %w", err)
	}
	return row.resource(), nil
}

// MaxHold bounds a hold: it is always shorter than the provider key's horizon, so that a charge begun in a hold can
// still be settled under its own key.
const MaxHold = 20 * time.Hour

// MaxDuration is the longest that a booking may last.
const MaxDuration = 366 * 24 * time.Hour

// CreateResource validates and stores a new resource; its id is made here. Wrong members are a *domain.ValidationError, and
// so is a price at which no booking whatever could be charged. At one that only some bookings could be charged at, the
// others are refused when they are made. Without a refund policy (nil, not an empty one) it gets the default.
func (s *Service) CreateResource(ctx context.Context, r domain.Resource) (domain.Resource, error) {
	if r.Refunds == nil {
		r.Refunds = domain.DefaultRefundPolicy()
	}
	if err := validate(r); err != nil {
		return domain.Resource{}, err
	}
	l, err := limitsOf(ctx, s.pool, r.Price.Currency)
	switch {
	case errors.Is(err, domain.ErrNotFound):
		return domain.Resource{}, notChargeable(r.Price.Currency)
	case err != nil:
		return domain.Resource{}, err
	case !l.someTotal(r):
		return domain.Resource{}, &domain.ValidationError{Field: "price", Reason: fmt.Sprintf(
			"no booking could be charged: the payment provider takes %d to %d %s in steps of %d (minor units)",
			max(l.Minimum, l.Step), l.Maximum, r.Price.Currency, l.Step)}
	}
	r.ID = domain.NewID[domain.ResourceID]()
	_, err = s.pool.Exec(ctx, `
		INSERT INTO resources (id, name, time_zone, places, unit_minutes, price, currency, hold, refund_policy)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
		r.ID.UUID, r.Name, r.TimeZone, r.Places, r.UnitMinutes, r.Price.Amount, r.Price.Currency, r.Hold, r.Refunds)
	if err != nil {
		return domain.Resource{}, fmt.Errorf("store a resource: %w", err)
	}
	return r, nil
}

func notChargeable(currency string) error {
	return &domain.ValidationError{Field: "currency", Reason: "the payment provider does not charge " + strconv.QuoteToASCII(currency)}
}

func validate(r domain.Resource) error {
	invalid := func(field, reason string) error { return &domain.ValidationError{Field: field, Reason: reason} }
	switch {
	case r.Name == "" || utf8.RuneCountInString(r.Name) > 200 || !utf8.ValidString(r.Name) || strings.ContainsFunc(r.Name, unicode.IsControl):
		return invalid("name", "1 to 200 characters, none of them a control character")
	case r.Places < 1 || r.Places > 1000:
		return invalid("places", "1 to 1000")
	case r.UnitMinutes < 1 || r.UnitMinutes > 44640:
		return invalid("unit_minutes", "1 to 44640, a month")
	case r.Price.Amount < 1 || r.Price.Amount > 999_999_999_999:
		return invalid("price", "1 to 999999999999 minor units")
	case r.Price.Currency == "" || !currency.IsValid(r.Price.Currency):
		return invalid("currency", strconv.QuoteToASCII(r.Price.Currency)+" is no currency of ISO 4217; want a code such as EUR")
	case r.Hold <= 0 || r.Hold >= MaxHold:
		return invalid("hold", "more than 0 and less than "+MaxHold.String())
	}
	if _, err := time.LoadLocation(r.TimeZone); err != nil || r.TimeZone == "" || r.TimeZone == "Local" {
		return invalid("time_zone", "an IANA zone such as Europe/Berlin")
	}
	return r.Refunds.Validate()
}
