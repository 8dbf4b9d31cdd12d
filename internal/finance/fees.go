package finance

import (
	"context"
	"fmt"
	"time"

	"holdfast/domain"
)

// FeeSchedule is what the provider has agreed to take of the transactions of a category from a day on.
type FeeSchedule struct {
	Currency    string // of the settlement
	Category    string // charge, dispute, refund
	BasisPoints int64  // hundredths of a per cent of the settled amount, rounded half up
	Fixed       int64  // and so many minor units
	Step        int64  // the sum is cut to a multiple of it
	Since       string // a day, UTC
}

// SetFees stores a schedule. Fees of a currency and category without one are not checked.
func (d *Desk) SetFees(ctx context.Context, s FeeSchedule) error {
	since, err := time.Parse(time.DateOnly, s.Since)
	if err != nil {
		return &domain.ValidationError{Field: "since", Reason: "must be a day such as 2027-03-01"}
	}
	if _, _, err := currencyOf(s.Currency); err != nil {
		return &domain.ValidationError{Field: "currency", Reason: "must be a currency such as EUR"}
	}
	if s.BasisPoints < 0 || s.Fixed < 0 || s.Step < 1 {
		return &domain.ValidationError{Field: "fees", Reason: "are not negative, and the step is at least 1"}
	}
	if s.BasisPoints > 10_000 || s.Fixed > largest || s.Step > largest {
		return &domain.ValidationError{Field: "fees", Reason: "are at most 10000 basis points, and not more than any account moves"}
	}
	_, err = d.pool.Exec(ctx, `
		INSERT INTO fee_schedules (currency, category, from_at, basis_points, fixed, step) VALUES (upper($1), $2, $3, $4, $5, $6)
		    ON CONFLICT ON CONSTRAINT fee_schedules_pkey DO UPDATE SET basis_points = $4, fixed = $5, step = $6`,
		s.Currency, s.Category, since, s.BasisPoints, s.Fixed, s.Step)
	if err != nil {
		return fmt.Errorf("store a fee schedule: %w", err)
	}
	return nil
}
