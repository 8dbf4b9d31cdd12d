package simulate

import (
	"context"
	"fmt"
	"net/http"

	"holdfast/domain"
	"holdfast/internal/bookings"
	"holdfast/payments"
)

// policies are what a resource may give back. Slots begin in some thirty days, so that the hours which pass meet the steps.
func policies() []domain.RefundPolicy {
	return []domain.RefundPolicy{
		nil, // nothing is ever given back
		{{HoursBefore: 0, Percent: 100}},
		{{HoursBefore: 690, Percent: 100}, {HoursBefore: 670, Percent: 33}},
		{{HoursBefore: 690, Percent: 50}},
	}
}

// policyGives is what a policy gives back of a total, asked for so many hours before the start: reckoned again, for the checker.
func policyGives(p domain.RefundPolicy, total int64, currency string, hours float64) int64 {
	step := map[string]int64{"KWD": 10, "MGA": 100}[currency]
	if step == 0 {
		step = 1
	}
	for _, at := range p {
		if hours >= float64(at.HoursBefore) {
			for given := int64(0); ; given += step { // the least that is enough
				if given*100 >= total*int64(at.Percent) {
					return given
				}
			}
		}
	}
	return 0
}

// refund is asked for by somebody of finance, in part or all that is left, as a rule of a booking that is paid.
func (s *schedule) refund() {
	b, ok := s.some()
	for _, other := range s.bookings {
		if other.Paid == "succeeded" && s.chance.percent(60) {
			b, ok = other, true
		}
	}
	if !ok {
		return
	}
	n := len(s.requests) + 1
	r := payments.RefundRequest{
		Amount: pick(s.chance, int64(0), 100, 500, 1000, 1000, 2500), Reason: fmt.Sprintf("refund %d", n), By: operator,
		Category: pick(s.chance, "", "duplicate", "requested_by_customer"),
	}
	s.askAbout(b, fmt.Sprintf("%d of %s to be given back", r.Amount, b.ID), func(ctx context.Context, a payments.Ask, _ bool) (bookings.Response, error) {
		return s.desk.Refund(ctx, a, r, func(made payments.RefundDecision) (int, []byte, error) {
			if made.Refund == nil {
				return http.StatusConflict, fmt.Appendf(nil, `{"code":%q}`, made.Refusal), nil
			}
			return http.StatusCreated, fmt.Appendf(nil, `{"id":%q}`, made.Refund.ID), nil
		})
	})
	s.requests[n-1].audit = r.Reason
}
