package httpapi

import (
	"context"
	"errors"
	"strings"
	"time"

	"holdfast/domain"
	"holdfast/internal/bookings"
)

type listBookingsInput struct {
	After    string   `query:"after" doc:"The next of the page before; left out for the first page."`
	Limit    int      `query:"limit" minimum:"1" maximum:"1000" default:"50" doc:"At most how many on one page, 1 to 1000."`
	Status   []string `query:"status,explode" enum:"held,confirmed,ending,expired,cancelled,failed" nullable:"false" doc:"Only bookings with this status; given several times: with any of them."`
	Resource string   `query:"resource_id" doc:"Only bookings of this resource."`
	From     string   `query:"from" doc:"Only bookings whose end is after this moment; RFC 3339 with its offset, in which a + is written %2B."`
	To       string   `query:"to" doc:"Only bookings whose start is before this moment; as from. With both: the bookings that overlap the half-open span."`
}

type listBookingsOutput struct {
	Body struct {
		Bookings []Booking         `json:"bookings" nullable:"false"`
		Next     *domain.BookingID `json:"next,omitempty" format:"uuid" doc:"Send this as after, with the same filters, to have the next page. Not there on the last page."`
	}
}

// listBookings shows one page of the client's own bookings.
func (s *Server) listBookings(ctx context.Context, x *exchange, in *listBookingsInput) (*listBookingsOutput, error) {
	filter, err := in.filter()
	if err != nil {
		return nil, err
	}
	found, err := s.config.Payments.List(ctx, x.principal.ClientID, filter)
	if errors.Is(err, domain.ErrNotFound) {
		return nil, unknownPage()
	}
	if err != nil {
		return nil, err
	}
	out := &listBookingsOutput{}
	if len(found) > in.Limit {
		found = found[:in.Limit]
		out.Body.Next = &found[in.Limit-1].Booking.ID
	}
	out.Body.Bookings = make([]Booking, 0, len(found))
	for _, v := range found {
		out.Body.Bookings = append(out.Body.Bookings, showBooking(v))
	}
	return out, nil
}

// filter reads the query; huma has checked limit and status.
func (in *listBookingsInput) filter() (f bookings.Filter, err error) {
	f.Limit = in.Limit + 1 // one more tells whether this page is the last
	for _, status := range in.Status {
		f.Statuses = append(f.Statuses, domain.BookingStatus(status))
	}
	if in.After != "" {
		if f.After, err = domain.ParseID[domain.BookingID](in.After); err != nil {
			return f, unknownPage()
		}
	}
	if in.Resource != "" {
		if f.ResourceID, err = domain.ParseID[domain.ResourceID](in.Resource); err != nil {
			return f, invalidQuery("resource_id", "want the id of a resource, a lower-case UUID")
		}
	}
	for _, end := range []struct {
		name, text string
		into       *time.Time
	}{{"from", in.From, &f.From}, {"to", in.To, &f.To}} {
		if end.text == "" {
			continue
		}
		var fault string
		*end.into, fault = parseInstant(end.text)
		switch {
		case fault != "" && strings.Contains(end.text, " "):
			return f, invalidQuery(end.name, "there is a space in it; in a query, write the + of an offset as %2B")
		case fault != "":
			return f, invalidQuery(end.name, fault)
		}
	}
	if in.From != "" && in.To != "" && !f.From.Before(f.To) {
		return f, invalidQuery("to", "want a moment after from")
	}
	return f, nil
}

func invalidQuery(name, message string) *Problem {
	return newProblem(CodeValidationFailed, "The query is not valid.", Fault{Location: "query." + name, Message: message})
}
