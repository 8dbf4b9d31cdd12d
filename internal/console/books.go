package console

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"holdfast/domain"
	"holdfast/internal/clients"
	"holdfast/internal/finance"
	"holdfast/outbox"
)

// Books is what finance sees and does.
type Books interface {
	Report(ctx context.Context, p finance.Period) (finance.Report, error)
	Window(ctx context.Context, p finance.Period) (finance.Window, error)
	PayoutRows(ctx context.Context, id, after string, limit int) (finance.PayoutDetail, error)
	Items(ctx context.Context, f finance.Filter) ([]finance.Item, error)
	Item(ctx context.Context, id int64) (finance.Item, error)
	Note(ctx context.Context, id int64, actor outbox.Actor, note, owner string) (finance.Item, error)
	SignOff(ctx context.Context, id int64, actor outbox.Actor, reason string) (finance.Item, error)
	SignOffPeriod(ctx context.Context, p finance.Period, actor outbox.Actor, reason string) (finance.SignedPeriod, error)
}

// registerFinance lists finance's pages.
func (c *Console) registerFinance() {
	page := func(pattern string, h handler) {
		c.page(pattern, clients.Finance, func(v *visit) error { return explainBooks(h(v)) })
	}
	page("GET /finance", c.month)
	page("GET /finance/report.csv", c.monthCSV)
	page("POST /finance/sign-off", c.signOffMonth)
	page("GET /finance/payouts/{id}", c.payout)
	page("GET /finance/exceptions", c.exceptions)
	page("GET /finance/exceptions/{id}", c.exception)
	page("POST /finance/exceptions/{id}/note", c.noteException)
	page("POST /finance/exceptions/{id}/sign-off", c.signOffException)
}

// period is the period in an address or a form, and how links name it.
func period(values url.Values) finance.Period {
	return finance.Period{From: values.Get("from"), To: values.Get("to"), Zone: values.Get("zone")}
}

func periodQuery(p finance.Period) string {
	return url.Values{"from": {p.From}, "to": {p.To}, "zone": {p.Zone}}.Encode()
}

// monthOf is the month of a day, or one of its neighbours.
func monthOf(day time.Time, more int, zone string) finance.Period {
	first := time.Date(day.Year(), day.Month()+time.Month(more), 1, 0, 0, 0, 0, time.UTC)
	return finance.Period{From: first.Format(time.DateOnly), To: first.AddDate(0, 1, 0).Format(time.DateOnly), Zone: zone}
}

// explainBooks finds the words for what finance's pages may run into.
func explainBooks(err error) error {
	var known *trouble
	var invalid *domain.ValidationError
	var comparing *finance.ComparingError
	exceptions := link{"/finance/exceptions", "Exceptions"}
	switch {
	case err == nil, errors.As(err, &known):
		return err
	case errors.As(err, &invalid):
		return refusal(http.StatusBadRequest, "The period is not understood", sentence(invalid.Field+" "+invalid.Reason)+
			" A period is its first day, the first day after it, and a time zone.")
	case errors.Is(err, domain.ErrNotFound):
		return refusal(http.StatusNotFound, "There is no such thing", "No exception or payout has this number. Look whether it was copied whole.", exceptions)
	case errors.Is(err, finance.ErrIncomplete):
		return refusal(http.StatusConflict, "The period cannot be signed off",
			"Not all of the provider's books were read for it. The reconciler reads them by itself while it runs (reconciler run); or import the provider's report (reconciler import FILE). Nothing was changed.")
	case errors.As(err, &comparing):
		t := refusal(http.StatusServiceUnavailable, "The books are being compared", far(comparing.Progress)+
			" It goes on by itself, and this page loads itself again until it is done.", exceptions)
		t.Again = true
		return t
	case errors.Is(err, domain.ErrBusy), errors.Is(err, context.DeadlineExceeded):
		return refusal(http.StatusServiceUnavailable, "The books are being compared", "Another comparison is going on. Load the page again in a moment.")
	}
	return err
}

// far tells how far a comparison is.
func far(p finance.Progress) string {
	switch p.Stage {
	case "read":
		return fmt.Sprintf("The provider's transactions are read first: %d so far, %.0f %% of what was not read yet.", p.Rows, 100*p.Done)
	case "match":
		return fmt.Sprintf("%.0f %% of the period is done.", 100*p.Done)
	}
	return "It has begun."
}
