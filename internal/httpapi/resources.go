package httpapi

import (
	"context"

	"holdfast/domain"
)

// Catalogue tells what can be booked.
type Catalogue interface {
	Resources(ctx context.Context) ([]domain.Resource, error)
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
}

type listResourcesOutput struct {
	Body struct {
		Resources []Resource `json:"resources" nullable:"false"`
	}
}

type getResourceInput struct {
	ID string `path:"id" doc:"The resource's id."`
}

type getResourceOutput struct {
	Body Resource
}

func (s *Server) listResources(ctx context.Context, _ *exchange, _ *struct{}) (*listResourcesOutput, error) {
	found, err := s.config.Catalogue.Resources(ctx)
	if err != nil {
		return nil, err
	}
	out := &listResourcesOutput{}
	out.Body.Resources = make([]Resource, 0, len(found))
	for _, r := range found {
		out.Body.Resources = append(out.Body.Resources, showResource(r))
	}
	return out, nil
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
	return Resource{
		ID: r.ID, Name: r.Name, TimeZone: r.TimeZone, Places: r.Places, UnitMinutes: r.UnitMinutes, Price: r.Price,
		HoldSeconds: r.Hold.Seconds(),
	}
}
