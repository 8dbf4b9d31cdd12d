package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"mime"
	"strings"

	"holdfast/domain"
	"holdfast/internal/finance"
	"holdfast/outbox"
)

// filled makes an empty list of none.
func filled[T any](list *[]T) {
	if *list == nil {
		*list = []T{}
	}
}

type reportInput struct {
	PeriodInput
	Format string `query:"format" enum:"json,csv" doc:"json or csv. Left out: csv where Accept asks for text/csv, else json."`
}

type reportOutput struct {
	ContentType string `header:"Content-Type" hidden:"true"`
	Disposition string `header:"Content-Disposition" doc:"Of the CSV: the name of a file to keep it in."`
	Body        []byte
}

// getReport compares the books of a period and shows the result, as JSON or as the documented CSV.
func (s *Server) getReport(ctx context.Context, x *exchange, in *reportInput) (*reportOutput, error) {
	p, _, err := s.period(ctx, in.PeriodInput)
	if err != nil {
		return nil, err
	}
	r, err := s.config.Finance.Report(ctx, p)
	if err != nil {
		return nil, err
	}
	if in.Format == "csv" || in.Format == "" && wantsCSV(x.accept) {
		var text bytes.Buffer
		err = r.WriteCSV(&text)
		name := "finance-" + p.From + "-" + p.To + ".csv"
		return &reportOutput{"text/csv; charset=utf-8; header=present", `attachment; filename="` + name + `"`, text.Bytes()}, err
	}
	text, err := json.Marshal(r.Shown())
	return &reportOutput{ContentType: "application/json", Body: text}, err
}

// wantsCSV tells whether CSV is the first that an Accept header names.
func wantsCSV(accept string) bool {
	first, _, _ := strings.Cut(accept, ",")
	mediaType, _, err := mime.ParseMediaType(first)
	return err == nil && mediaType == "text/csv"
}

type signOffPeriodInput struct {
	PeriodInput
	RawBody []byte `contentType:"application/json"`
}

// signOffPeriod locks a period. Sent again it changes nothing.
func (s *Server) signOffPeriod(ctx context.Context, x *exchange, in *signOffPeriodInput) (*shown[finance.SignedPeriod], error) {
	p, w, err := s.period(ctx, in.PeriodInput)
	if err != nil {
		return nil, err
	}
	reason, err := decodeSignOff(in.RawBody)
	if err != nil {
		return nil, err
	}
	v, err := s.config.Finance.SignOffPeriod(ctx, p, x.actor(), reason)
	var refused *outbox.RefusedError
	if !errors.As(err, &refused) {
		return &shown[finance.SignedPeriod]{v}, err
	}
	signed, unread := s.config.Finance.Signed(ctx, w)
	if unread != nil || len(signed) == 0 {
		return nil, err
	}
	first := signed[0]
	if first.From.Equal(w.From) && first.To.Equal(w.To) && first.Zone == p.Zone && first.SignedOffBy == string(x.actor()) && first.Reason == reason { // sent again
		return &shown[finance.SignedPeriod]{first}, nil
	}
	return nil, firstWas(refused, first.SignedOffBy, &first.SignedOffAt)
}

type listPayoutsInput struct{ PeriodInput }

// listPayouts shows the payouts of a period.
func (s *Server) listPayouts(ctx context.Context, _ *exchange, in *listPayoutsInput) (*shown[finance.PayoutList], error) {
	p, _, err := s.period(ctx, in.PeriodInput)
	if err != nil {
		return nil, err
	}
	v, err := s.config.Finance.Payouts(ctx, p)
	filled(&v.Incomplete)
	filled(&v.Payouts)
	return &shown[finance.PayoutList]{v}, err
}

const maxProviderID = 255 // characters

type payoutInput struct {
	ID    string `path:"id" doc:"The provider's id of the payout."`
	Limit int    `query:"limit" minimum:"1" maximum:"1000" default:"100" doc:"At most how many rows on one page, 1 to 1000."`
	After string `query:"after" maxLength:"255" doc:"The next of the page before; left out for the first page."`
}

// FinancePayoutDetail is a payout and one page of what went out with it.
type FinancePayoutDetail struct {
	finance.PayoutDetail
	Next string `json:"next,omitempty"`
}

// getPayout shows what went out with a payout, down to the bookings.
func (s *Server) getPayout(ctx context.Context, _ *exchange, in *payoutInput) (*shown[FinancePayoutDetail], error) {
	if !fits(in.ID, 1, maxProviderID, visibleASCII()) {
		return nil, domain.ErrNotFound
	}
	if !fits(in.After, 0, maxProviderID, visibleASCII()) {
		return nil, invalidQuery("after", "want the next of a page")
	}
	v, err := s.config.Finance.PayoutRows(ctx, in.ID, in.After, in.Limit+1) // one more tells whether this page is the last
	if err != nil {
		return nil, err
	}
	filled(&v.Rows)
	page := FinancePayoutDetail{PayoutDetail: v}
	if len(v.Rows) > in.Limit {
		page.Rows, page.Next = v.Rows[:in.Limit], v.Rows[in.Limit-1].ID
	}
	return &shown[FinancePayoutDetail]{page}, nil
}
