package stripe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	sdk "github.com/stripe/stripe-go/v76"

	"holdfast/payments"
)

// Events reads one page of the account's events. It is no walk to the end: a window may hold more than one run may read,
// and what was read is of use by itself.
func (g *Gateway) Events(ctx context.Context, types []string, from, to time.Time, after string) ([]payments.Event, bool, error) {
	act := "list events"
	query := payments.Params{
		"limit": strconv.Itoa(pageSize), "created[gte]": fmt.Sprint(from.Unix()), "created[lte]": fmt.Sprint(to.Unix()),
	}
	for i, t := range types {
		query[fmt.Sprintf("types[%d]", i)] = t
	}
	if after != "" {
		if !idFits(after) {
			return nil, false, &ReadError{Act: act, Reason: "the id to go on after is malformed"}
		}
		query["starting_after"] = after
	}
	p := &page[json.RawMessage]{}
	if err := g.get(ctx, act, "/v1/events", encode(query), p); err != nil {
		if after != "" && err.HTTPStatus/100 == 4 && err.Code == string(sdk.ErrorCodeResourceMissing) {
			err.cause = payments.ErrNoSuchEvent
		}
		return nil, false, err
	}
	events, err := eventsOf(p)
	if err != nil {
		return nil, false, &ReadError{Act: act, HTTPStatus: http.StatusOK, Reason: err.Error()}
	}
	return events, *p.HasMore, nil
}

func eventsOf(p *page[json.RawMessage]) ([]payments.Event, error) {
	if p.Object != "list" || p.HasMore == nil || p.Data == nil {
		return nil, errors.New("a page is no list")
	}
	if *p.HasMore && len(p.Data) == 0 {
		return nil, errors.New("there is more, but the page that should bring it brings nothing")
	}
	events := make([]payments.Event, 0, len(p.Data))
	for _, raw := range p.Data {
		if raw == nil {
			return nil, errNoEvent
		}
		e, err := readEvent(*raw)
		if err != nil {
			return nil, err
		}
		events = append(events, e)
	}
	return events, nil
}
