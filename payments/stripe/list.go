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
func walk[T, U any](
	ctx context.Context, g *Gateway, act, path string, filter payments.Params, read func(*T) (id string, item U, err error),
) ([]U, error) {
	var all []U
	seen := map[string]bool{}
	type named struct {
		id   string
		item U
	}
	err := eachPage(ctx, g, act, path, filter, func(raw *T) (string, named, error) {
		id, item, err := read(raw)
		return id, named{id, item}, err
	}, func(page []named) error {
		for _, n := range page {
			if !seen[n.id] { // pages may overlap while objects are born
				seen[n.id] = true
				all = append(all, n.item)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

// eachPage reads a listing to its end and hands on page by page, so that none but the page is in memory. Pages may overlap. An
// error means that the listing is incomplete; each's own error is returned as it is.
// The SDK's iterators are not used: they take an empty page for the end even where Stripe says that there is more.
func eachPage[T, U any](
	ctx context.Context, g *Gateway, act, path string, filter payments.Params, read func(*T) (id string, item U, err error), each func([]U) error,
) error {
	incomplete := func(why string) error {
		return &ReadError{Act: act, HTTPStatus: http.StatusOK, Reason: "the listing is incomplete: " + why}
	}
	query := payments.Params{"limit": strconv.Itoa(pageSize)}
	for name, value := range filter {
		query[name] = value
	}
	asked, before := map[string]bool{}, map[string]bool{}
	for {
		p := &page[T]{}
		if err := g.get(ctx, act, path, encode(query), p); err != nil {
			return err
		}
		if p.Object != "list" || p.HasMore == nil || p.Data == nil {
			return incomplete("a page is no list")
		}
		ids, fresh, last := make(map[string]bool, len(p.Data)), false, ""
		items := make([]U, 0, len(p.Data))
		for _, raw := range p.Data {
			id, item, err := read(raw)
			if err != nil {
				return incomplete(err.Error())
			}
			ids[id], last = true, id
			fresh = fresh || !before[id]
			items = append(items, item)
		}
		if (!fresh && (*p.HasMore || len(asked) > 0)) || (*p.HasMore && asked[last]) { // asking again could go on for ever
			return incomplete("there is more, but the page that should bring it brings nothing new")
		}
		if err := each(items); err != nil {
			return err
		}
		if !*p.HasMore {
			return nil
		}
		query["starting_after"], asked[last], before = last, true, ids
	}
}
