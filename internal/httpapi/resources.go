package httpapi

import (
	"context"
	"errors"

	"holdfast/domain"
)

// Catalogue tells what can be booked: the oldest first, at most limit of those after one of them, or from the beginning
// with the zero id; after one that does not exist: domain.ErrNotFound.
type Catalogue interface {
	Resources(ctx context.Context, after domain.ResourceID, limit int) ([]domain.Resource, error)
	Resource(ctx context.Context, id domain.ResourceID) (domain.Resource, error)
}

// Resource is something that can be booked, as the API shows it.
type Resource struct {
	ID          domain.ResourceID `json:"id" format:"uuid"`
	Name        string            `json:"name"`
	TimeZone    string            `json:"time_zone" doc:"Where it is, as an IANA zone." example:"Europe/Berlin"`
	Places      int               `json:"places" doc:"How many can have it at the same time."`
	UnitMinutes int               `json:"unit_minutes" doc:"It is booked in multiples of this."`
	Price       domain.Money      `json:"price" doc:"For one place and one unit, in minor units."`
	HoldSeconds float64           `json:"hold_seconds" doc:"How long a slot waits for its money."`
	Refunds     []RefundStep      `json:"refund_policy" nullable:"false" doc:"What goes back to a customer who cancels a paid booking: the first step that still holds counts, and after the last one nothing goes back. No step: nothing is ever given back. A booking keeps the policy that it was made under."`
}

// RefundStep is a step of a refund policy.
type RefundStep struct {
	HoursBefore int `json:"hours_before" doc:"It holds until so many hours before the start, that moment included. Hours are elapsed time, whatever clocks are changed meanwhile." example:"48"`
	Percent     int `json:"percent" doc:"So much of the total goes back; what does not come out even is rounded in the customer's favour." example:"100"`
}

type listResourcesInput struct {
	After string `query:"after" doc:"The next of the page before; left out for the first page."`
	Limit int    `query:"limit" minimum:"1" maximum:"1000" default:"1000" doc:"At most how many on one page, 1 to 1000."`
}

type listResourcesOutput struct {
	Body struct {
		Resources []Resource         `json:"resources" nullable:"false"`
		Next      *domain.ResourceID `json:"next,omitempty" format:"uuid" doc:"Send this as after to have the next page. Not there on the last page."`
	}
}

type getResourceInput struct {
	ID string `path:"id" doc:"The resource's id."`
}

type getResourceOutput struct {
	Body Resource
}

// listResources shows one page of what can be booked.
func (s *Server) listResources(ctx context.Context, _ *exchange, in *listResourcesInput) (*listResourcesOutput, error) {
	var after domain.ResourceID
	if in.After != "" {
		var err error
		if after, err = domain.ParseID[domain.ResourceID](in.After); err != nil {
			return nil, unknownPage()
		}
	}
	found, err := s.config.Catalogue.Resources(ctx, after, in.Limit+1) // one more tells whether this page is the last
	if errors.Is(err, domain.ErrNotFound) {
		return nil, unknownPage()
	}
	if err != nil {
		return nil, err
	}
	out := &listResourcesOutput{}
	if len(found) > in.Limit {
		found = found[:in.Limit]
		out.Body.Next = &found[in.Limit-1].ID
	}
	out.Body.Resources = make([]Resource, 0, len(found))
	for _, r := range found {
		out.Body.Resources = append(out.Body.Resources, showResource(r))
	}
	return out, nil
}

func unknownPage() *Problem {
	return newProblem(CodeValidationFailed, "There is no page after this.",
		Fault{Location: "query.after", Message: "want the next of an earlier page, as it came"})
}

func (s *Server) getResource(ctx context.Context, _ *exchange, in *getResourceInput) (*getResourceOutput, error) {
	id, err := domain.ParseID[domain.ResourceID](in.ID)
	if err != nil {
		return nil, domain.ErrNotFound
	}
	r, err := s.config.Catalogue.Resource(ctx, id)
	if err != nil {
		return nil, err
	}
	return &getResourceOutput{Body: showResource(r)}, nil
}

func showResource(r domain.Resource) Resource {
	steps := make([]RefundStep, 0, len(r.Refunds))
	for _, s := range r.Refunds {
		steps = append(steps, RefundStep(s))
	}
	return Resource{
		ID: r.ID, Name: r.Name, TimeZone: r.TimeZone, Places: r.Places, UnitMinutes: r.UnitMinutes, Price: r.Price,
		HoldSeconds: r.Hold.Seconds(), Refunds: steps,
	}
}
