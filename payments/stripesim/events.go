package stripesim

import (
	"encoding/json"
	"slices"
	"strings"
)

// event is a fact as it was when it happened: data is a snapshot and never changes.
type event struct {
	id        string
	order     int64
	created   int64
	kind      string
	data      json.RawMessage
	requestID string // "" where Stripe or the customer acted
	key       string
}

func (e *event) ident() string { return e.id }
func (e *event) place() int64  { return e.order }
func (e *event) born() int64   { return e.created }

// emit records an event; c is the request that caused it, or nil.
func (w *world) emit(c *call, kind string, snapshot object) {
	e := &event{id: newID("evt_3", 23), kind: kind, data: encode(snapshot)}
	e.order, e.created = w.birth()
	if c != nil {
		e.requestID, e.key = c.requestID, c.key
	}
	w.events = append(w.events, e)
	if strings.HasPrefix(kind, "payment_intent.") {
		w.index(e.data)
	}
	w.announce(e)
}

func (e *event) render() object { return e.renderFor("") }

// renderFor renders the event in the name of an API version; empty: the simulator's.
func (e *event) renderFor(version string) object {
	return object{
		"id": e.id, "object": "event", "api_version": orDefault(version, APIVersion), "created": e.created, "livemode": false, "type": e.kind,
		"pending_webhooks": 0, "data": object{"object": e.data},
		"request": object{"id": null(e.requestID), "idempotency_key": null(e.key)},
	}
}

func prepareEventRetrieve(c *call) (execution, *apiError) {
	if err := c.params.read().finish(); err != nil {
		return nil, err
	}
	return func(w *world) (object, *apiError) {
		for _, e := range w.events {
			if e.id == c.id {
				return e.render(), nil
			}
		}
		return nil, missing("event", "id", c.id)
	}, nil
}

func prepareEventList(c *call) (execution, *apiError) {
	r := c.params.read()
	page := readPage(r)
	kinds := r.list("types")
	if kind := r.text("type"); kind != "" {
		kinds = append(kinds, kind)
	}
	if len(kinds) > 20 {
		r.refuse(invalid("", "types", "At most 20 types."))
	}
	r.unmodelled("delivery_success")
	if err := r.finish(); err != nil {
		return nil, err
	}
	wanted := func(e *event) bool {
		return len(kinds) == 0 || slices.ContainsFunc(kinds, func(kind string) bool {
			prefix, wildcard := strings.CutSuffix(kind, "*") // charge.* is Stripe's own notation
			return e.kind == kind || wildcard && strings.HasPrefix(e.kind, prefix)
		})
	}
	return func(w *world) (object, *apiError) { return list(c, page, w.events, wanted, (*event).render) }, nil
}
