package client

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
)

// Resource is something that can be booked.
type Resource struct {
	ID          string  `json:"id"`
	Name        string  `json:"name"`
	TimeZone    string  `json:"time_zone"` // IANA
	Places      int     `json:"places"`    // how many can have it at the same time
	UnitMinutes int     `json:"unit_minutes"`
	Price       Money   `json:"price"` // for one place and one unit
	HoldSeconds float64 `json:"hold_seconds"`

	RefundPolicy []RefundStep `json:"refund_policy"` // the earliest first; the first that still holds counts, and after the last nothing goes back
}

// RefundStep is what goes back of a paid booking that is cancelled until so many hours before its start.
type RefundStep struct {
	HoursBefore int `json:"hours_before"` // elapsed time, that moment included
	Percent     int `json:"percent"`      // of the total
}

// ResourcePage is one page of what can be booked.
type ResourcePage struct {
	Resources []Resource `json:"resources"`
	Next      string     `json:"next"` // send it as After to have the next page; empty on the last one
}

// Page asks for a part of a list.
type Page struct {
	After string // Next of the page before; empty for the first page
	Limit int    // at most how many; 0 leaves it to the API
}

func (p Page) values() url.Values {
	q := url.Values{}
	if p.After != "" {
		q.Set("after", p.After)
	}
	if p.Limit != 0 {
		q.Set("limit", strconv.Itoa(p.Limit))
	}
	return q
}

// ListResources reads one page of what can be booked, the oldest first.
func (c *Client) ListResources(ctx context.Context, p Page) (ResourcePage, error) {
	var page ResourcePage
	_, err := c.do(ctx, call{
		method: http.MethodGet, path: "/v1/resources" + p.query(), want: http.StatusOK,
		read: read(&page, func(p *ResourcePage) bool { return p.Resources != nil }),
	})
	if err != nil {
		return ResourcePage{}, fmt.Errorf("list resources: %w", err)
	}
	return page, nil
}

// GetResource reads one resource; if there is none: not_found.
func (c *Client) GetResource(ctx context.Context, id string) (Resource, error) {
	var r Resource
	_, err := c.do(ctx, call{
		method: http.MethodGet, path: "/v1/resources/" + url.PathEscape(id), want: http.StatusOK,
		read: read(&r, func(r *Resource) bool { return r.ID != "" }),
	})
	if err != nil {
		return Resource{}, fmt.Errorf("get resource: %w", err)
	}
	return r, nil
}
