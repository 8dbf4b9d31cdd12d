package httpapi

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"holdfast/domain"
	"holdfast/internal/finance"
	"holdfast/outbox"
)

// Finance is the finance desk: our books against the provider's.
type Finance interface {
	Window(ctx context.Context, p finance.Period) (finance.Window, error)
	Report(ctx context.Context, p finance.Period) (finance.Report, error)
	Payouts(ctx context.Context, p finance.Period) (finance.PayoutList, error)
	PayoutRows(ctx context.Context, id, after string, limit int) (finance.PayoutDetail, error)
	Items(ctx context.Context, f finance.Filter) ([]finance.Item, error)
	Item(ctx context.Context, id int64) (finance.Item, error)

	Note(ctx context.Context, id int64, actor outbox.Actor, note, owner string) (finance.Item, error)
	SignOff(ctx context.Context, id int64, actor outbox.Actor, reason string) (finance.Item, error)
	Signed(ctx context.Context, w finance.Window) ([]finance.SignedPeriod, error)
	SignOffPeriod(ctx context.Context, p finance.Period, actor outbox.Actor, reason string) (finance.SignedPeriod, error)
}

// PeriodInput names a period. It is exported because huma looks into no other embedded type.
type PeriodInput struct {
	From string `query:"from" required:"true" format:"date" doc:"The first day, such as 2027-03-01."`
	To   string `query:"to" required:"true" format:"date" doc:"The first day after the period; at most 366 days after from."`
	Zone string `query:"zone" required:"true" maxLength:"64" doc:"Whose days: a zone of the IANA database. The server's own decides nothing." example:"Europe/Berlin"`
}

const longestPeriod = 366 // days

// period reads the query. What the desk finds wrong with it is told of the query, too.
func (s *Server) period(ctx context.Context, in PeriodInput) (finance.Period, finance.Window, error) {
	p := finance.Period{From: in.From, To: in.To, Zone: in.Zone}
	var days [2]time.Time
	for i, day := range []struct{ name, text string }{{"from", in.From}, {"to", in.To}} {
		var err error
		if days[i], err = time.Parse(time.DateOnly, day.text); err != nil || days[i].Year() < 2000 || days[i].Year() > 2100 {
			return p, finance.Window{}, invalidQuery(day.name, "want a day from 2000 to 2100 such as 2027-03-01")
		}
	}
	if days[1].Sub(days[0]) > longestPeriod*24*time.Hour {
		return p, finance.Window{}, invalidQuery("to", "want at most 366 days after from")
	}
	w, err := s.config.Finance.Window(ctx, p)
	var invalid *domain.ValidationError
	if errors.As(err, &invalid) {
		err = invalidQuery(invalid.Field, invalid.Reason)
	}
	return p, w, err
}

// itemID reads an exception's number out of the path.
func itemID(text string) (int64, error) {
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil || id <= 0 || strconv.FormatInt(id, 10) != text {
		return 0, domain.ErrNotFound
	}
	return id, nil
}

type listExceptionsInput struct {
	Status string `query:"status" enum:"open,closed,signed_off" doc:"Only this status."`
	Kind   string `query:"kind" enum:"charged_without_booking,confirmed_without_charge,two_charges,amount_differs,refund_without_cause,refund_missing,fee_differs,dispute_unknown,payout_differs,event_unpublished,late,unexplained,period_changed" doc:"Only this kind."`
	Limit  int    `query:"limit" minimum:"1" maximum:"1000" default:"100" doc:"At most how many on one page, 1 to 1000."`
	After  int64  `query:"after" minimum:"0" doc:"The next of the page before, with the same filters; left out for the first page."`
}

// FinanceExceptions is one page of exceptions.
type FinanceExceptions struct {
	Exceptions []finance.Item `json:"exceptions" nullable:"false"`
	Next       int64          `json:"next,omitempty" doc:"Send this as after, with the same filters, to have the next page. Not there on the last page."`
}

// listExceptions shows one page of what does not match, in the order in which it was found.
func (s *Server) listExceptions(ctx context.Context, _ *exchange, in *listExceptionsInput) (*shown[FinanceExceptions], error) {
	found, err := s.config.Finance.Items(ctx, finance.Filter{Status: in.Status, Kind: in.Kind, After: in.After, Limit: in.Limit + 1}) // one more tells whether this page is the last
	if err != nil {
		return nil, err
	}
	page := FinanceExceptions{Exceptions: append([]finance.Item{}, found[:min(len(found), in.Limit)]...)}
	if len(found) > in.Limit {
		page.Next = found[in.Limit-1].ID
	}
	return &shown[FinanceExceptions]{page}, nil
}

type exceptionInput struct {
	ID string `path:"id" doc:"The exception's number."`
}

// getException shows one.
func (s *Server) getException(ctx context.Context, _ *exchange, in *exceptionInput) (*shown[finance.Item], error) {
	id, err := itemID(in.ID)
	if err != nil {
		return nil, err
	}
	v, err := s.config.Finance.Item(ctx, id)
	return &shown[finance.Item]{v}, err
}

type changeExceptionInput struct {
	ID      string `path:"id" doc:"The exception's number."`
	RawBody []byte `contentType:"application/json"`
}

const maxOwner = 100 // characters

// noteRequest is the body of a note, as the OpenAPI document shows it.
type noteRequest struct {
	Note  string `json:"note,omitempty" minLength:"1" maxLength:"500" doc:"What is known of it. Left out: the note stays."`
	Owner string `json:"owner,omitempty" minLength:"1" maxLength:"100" doc:"Who looks after it from now on. Left out: the owner stays. One of both must be there."`
}

// noteException writes a note to an open exception, or gives it to another owner. Sent again it changes nothing.
func (s *Server) noteException(ctx context.Context, x *exchange, in *changeExceptionInput) (*shown[finance.Item], error) {
	id, err := itemID(in.ID)
	if err != nil {
		return nil, err
	}
	var body noteRequest
	err = readBodyOf(in.RawBody, func(m members) {
		body.Note, body.Owner = m.optionalLine("note", maxReason), m.optionalLine("owner", maxOwner)
	})
	if err != nil {
		return nil, err
	}
	now, err := s.config.Finance.Item(ctx, id)
	if err != nil {
		return nil, err
	}
	same := (body.Note == "" || body.Note == now.Note) && (body.Owner == "" || body.Owner == now.Owner)
	if same && body != (noteRequest{}) {
		return &shown[finance.Item]{now}, nil
	}
	v, err := s.config.Finance.Note(ctx, id, x.actor(), body.Note, body.Owner)
	return &shown[finance.Item]{v}, err
}

// optionalLine takes a line of words, or nothing where the member is absent.
func (m members) optionalLine(name string, longest int) string {
	if _, ok := m.values[name]; !ok {
		return ""
	}
	text := m.text(name, 1, longest, line())
	if strings.TrimSpace(text) == "" && text != "" {
		m.fault(name, "want words")
	}
	return text
}

// signOffRequest is the body of a signature, as the OpenAPI document shows it.
type signOffRequest struct {
	Reason string `json:"reason" minLength:"3" maxLength:"500" doc:"Why, for whoever reads it later. Kept with who signed." example:"A new tariff since Monday."`
}

func decodeSignOff(body []byte) (reason string, err error) {
	err = readBodyOf(body, func(m members) { reason = m.reason() })
	return reason, err
}

// signOffException takes an open exception off the list. Sent again it changes nothing.
func (s *Server) signOffException(ctx context.Context, x *exchange, in *changeExceptionInput) (*shown[finance.Item], error) {
	id, err := itemID(in.ID)
	if err != nil {
		return nil, err
	}
	reason, err := decodeSignOff(in.RawBody)
	if err != nil {
		return nil, err
	}
	v, err := s.config.Finance.SignOff(ctx, id, x.actor(), reason)
	var refused *outbox.RefusedError
	if !errors.As(err, &refused) {
		return &shown[finance.Item]{v}, err
	}
	now, unread := s.config.Finance.Item(ctx, id)
	if unread == nil && now.SignedOffBy == string(x.actor()) && now.SignOffReason == reason { // sent again
		return &shown[finance.Item]{now}, nil
	}
	return nil, firstWas(refused, now.SignedOffBy, now.EndedAt)
}

// firstWas tells in a refusal who was first.
func firstWas(refused *outbox.RefusedError, by string, at *time.Time) error {
	told := *refused
	if by != "" && at != nil {
		when := domain.Instant(*at)
		told.By, told.At = outbox.Actor(by), &when
	}
	return &told
}
