package bookings

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast/domain"
	"holdfast/internal/postgres"
)

// limits is what the payment provider takes in one currency, in minor units.
type limits struct {
	Step    int64 // an amount is a multiple of it
	Maximum int64
	Minimum int64 // 0: none is known
}

// limitsOf reads what holds today. A currency that cannot be charged is domain.ErrNotFound.
func limitsOf(ctx context.Context, q postgres.Querier, currency string) (limits, error) {
	rows, err := q.Query(ctx, `
		SELECT step, maximum, coalesce(minimum, 0) AS minimum FROM charge_limits WHERE currency = $1`, currency)
	if err != nil {
		return limits{}, fmt.Errorf("read what can be charged: %w", err)
	}
	l, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[limits])
	if errors.Is(err, pgx.ErrNoRows) {
		return limits{}, domain.ErrNotFound
	}
	if err != nil {
		return limits{}, fmt.Errorf("read what can be charged: %w", err)
	}
	return l, nil
}

// ReadStep queues the reading of the least that a currency counts, in minor units: what is charged or goes back is a multiple of
// it. It fills in step.
func ReadStep(b *pgx.Batch, currency string, step *int64) {
	type row struct{ Step int64 }
	postgres.One(b, "read the step of a currency", func(r row) { *step = r.Step },
		`SELECT coalesce((SELECT step FROM charge_currencies WHERE currency = $1), 1) AS step`, currency)
}

// someTotal tells whether any booking of the resource has a total that can be charged: some number of places for some
// number of units, as many as a booking may have.
func (l limits) someTotal(r domain.Resource) bool {
	most := int64(MaxDuration / (time.Duration(r.UnitMinutes) * time.Minute))
	for places := int64(1); places <= int64(r.Places) && r.Price.Amount <= l.Maximum/places; places++ {
		unit := r.Price.Amount * places
		whole := l.Step / gcd(unit, l.Step)           // so many units, or a multiple, leave no fraction
		enough := max((l.Minimum+unit-1)/unit, 1)     // so many reach the minimum
		units := (enough + whole - 1) / whole * whole // so many do both
		if units <= most && units <= l.Maximum/unit {
			return true
		}
	}
	return false
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// Minimum is the least that the payment provider charges in a currency from a day on, until the day of the next one.
type Minimum struct {
	Least domain.Money // amount 0: no minimum
	AsOf  time.Time    // a day (UTC)
	Now   bool         // it is the one that holds today
}

// Minimums lists all of them, by currency, the newest first.
func (s *Service) Minimums(ctx context.Context) ([]Minimum, error) {
	rows, err := s.pool.Query(ctx, `
		SELECT m.currency, m.amount, m.as_of,
		       m.as_of = (SELECT max(n.as_of) FROM charge_minimums n
		                   WHERE n.currency = m.currency AND n.as_of <= (clock_timestamp() AT TIME ZONE 'UTC')::date)
		  FROM charge_minimums m
		 ORDER BY m.currency, m.as_of DESC`)
	if err != nil {
		return nil, fmt.Errorf("list minimums: %w", err)
	}
	found, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (m Minimum, err error) {
		var now *bool
		err = row.Scan(&m.Least.Currency, &m.Least.Amount, &m.AsOf, &now)
		m.Now = now != nil && *now
		return m, err
	})
	if err != nil {
		return nil, fmt.Errorf("list minimums: %w", err)
	}
	return found, nil
}

// SetMinimum adds a minimum from a day on, or replaces the one of that very day. Bookings that were accepted before keep
// their total. Wrong members are a *domain.ValidationError.
func (s *Service) SetMinimum(ctx context.Context, least domain.Money, asOf time.Time) error {
	l, err := limitsOf(ctx, s.pool, least.Currency)
	switch {
	case errors.Is(err, domain.ErrNotFound):
		return notChargeable(least.Currency)
	case err != nil:
		return err
	case least.Amount < 0 || least.Amount > l.Maximum:
		return &domain.ValidationError{Field: "amount", Reason: fmt.Sprintf("0 for no minimum, to %d (minor units)", l.Maximum)}
	}
	_, err = s.pool.Exec(ctx, `
		INSERT INTO charge_minimums (currency, as_of, amount) VALUES ($1, $2, $3)
		ON CONFLICT ON CONSTRAINT charge_minimums_pkey DO UPDATE SET amount = excluded.amount`,
		least.Currency, asOf, least.Amount)
	if err != nil {
		return fmt.Errorf("set a minimum: %w", err)
	}
	return nil
}
