package client

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"
)

// BookingFilter says which of this client's bookings to list; what is left empty filters nothing.
type BookingFilter struct {
	Page

	Statuses   []BookingStatus // any of them
	ResourceID string
	From, To   time.Time // bookings that overlap this half-open span; either end may be left out
}

// BookingPage is one page of bookings.
type BookingPage struct {
	Bookings []Booking `json:"bookings"`
	Next     string    `json:"next"` // send it as After, with the same filter, to have the next page; empty on the last one
}

// ListBookings reads one page of this client's own bookings.
func (c *Client) ListBookings(ctx context.Context, f BookingFilter) (BookingPage, error) {
	var page BookingPage
	_, err := c.do(ctx, call{
		method: http.MethodGet, path: "/v1/bookings" + f.query(), want: http.StatusOK,
		read: read(&page, func(p *BookingPage) bool { return p.Bookings != nil }),
	})
	if err != nil {
		return BookingPage{}, fmt.Errorf("list bookings: %w", err)
	}
	return page, nil
}

func (f BookingFilter) query() string {
	q := f.values()
	for _, status := range f.Statuses {
		q.Add("status", string(status))
	}
	if f.ResourceID != "" {
		q.Set("resource_id", f.ResourceID)
	}
	for name, at := range map[string]time.Time{"from": f.From, "to": f.To} {
		if !at.IsZero() {
			q.Set(name, at.Format(time.RFC3339Nano))
		}
	}
	return encode(q)
}

func (p Page) query() string { return encode(p.values()) }

func encode(q url.Values) string {
	if len(q) == 0 {
		return ""
	}
	return "?" + q.Encode()
}
