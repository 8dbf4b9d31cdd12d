package stripe

import (
	"context"
	"net/http"
	"strconv"

	sdk "github.com/stripe/stripe-go/v76"

	"holdfast/payments"
)

const pageSize = 100 // the most that Stripe gives

// page is one page of a listing. The SDK's own types take {} for the last page of an empty listing; here it is told apart.
type page[T any] struct {
	sdk.APIResource

	Object  string `json:"object"`
	HasMore *bool  `json:"has_more"`
	Data    []*T   `json:"data"`
}

// walk reads a listing to its end. It returns everything or an error: half a listing proves nothing about what it lacks.
// The SDK's iterators are not used: they take an empty page for the end even where Stripe says that there is more.
func walk[T, U any](
	ctx context.Context, g *Gateway, act, path string, filter payments.Params, read func(*T) (id string, item U, err error),
) ([]U, error) {
	var all []U
	seen := map[string]bool{}
	incomplete := func(why string) error {
		return &ReadError{Act: act, HTTPStatus: http.StatusOK, Reason: "the listing is incomplete: " + why}
	}
	query := payments.Params{"limit": strconv.Itoa(pageSize)}
	for name, value := range filter {
		query[name] = value
	}
	for {
		p := &page[T]{}
		if err := g.get(ctx, act, path, encode(query), p); err != nil {
			return nil, err
		}
		if p.Object != "list" || p.HasMore == nil || p.Data == nil {
			return nil, incomplete("a page is no list")
		}
		known := len(seen)
		last := ""
		for _, raw := range p.Data {
			id, item, err := read(raw)
			if err != nil {
				return nil, incomplete(err.Error())
			}
			last = id
			if !seen[id] { // pages may overlap while objects are born
				seen[id] = true
				all = append(all, item)
			}
		}
		if len(seen) == known && (*p.HasMore || known > 0) { // asking again could get the same answer for ever
			return nil, incomplete("there is more, but the page that should bring it brings nothing new")
		}
		if !*p.HasMore {
			return all, nil
		}
		query["starting_after"] = last
	}
}
