package stripesim

import (
	"slices"
	"strconv"
	"strings"
)

// expansions are the fields a request wants as objects instead of ids.
type expansions map[string]bool

// expansions reads expand[]; a field that is not one of the allowed cannot be expanded.
func (c *call) expansions(r *reader, allowed ...string) expansions {
	x := expansions{}
	for _, field := range c.params.list("expand") {
		if !slices.Contains(allowed, field) {
			r.refuse(invalid("", "expand", "%s cannot be expanded here.", field))
		}
		x[field] = true
		if parent, _, nested := cutLast(field, "."); nested && parent != "data" {
			x[parent] = true
		}
	}
	return x
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// inside is what the object in a field expands; in data, what the members of a list do.
func (x expansions) inside(field string) expansions {
	members := expansions{}
	for path := range x {
		if name, ok := strings.CutPrefix(path, field+"."); ok {
			members[name] = true
		}
	}
	return members
}

// listed is what lists are made of.
type listed interface {
	ident() string
	place() int64 // order of birth
	born() int64  // Unix seconds
}

// page is which part of a list is wanted.
type page struct {
	limit         int64
	startingAfter string
	endingBefore  string
	created       window
}

// window is a range of Unix seconds, by gt, gte, lt, lte, or eq.
type window map[string]int64

func readPage(r *reader) page {
	p := page{limit: 10, startingAfter: r.text("starting_after"), endingBefore: r.text("ending_before")}
	if r.present("limit") {
		p.limit = r.integer("limit")
		if p.limit < 1 || p.limit > 100 {
			r.refuse(invalid("parameter_invalid_integer", "limit", "limit is between 1 and 100."))
		}
	}
	if p.startingAfter != "" && p.endingBefore != "" {
		r.refuse(invalid("", "starting_after", "starting_after and ending_before exclude each other."))
	}
	p.created = readWindow(r, "created")
	return p
}

func readWindow(r *reader, field string) window {
	bounds := map[string]string{}
	if text, isText := r.params[field].(string); isText {
		bounds["eq"] = text
	} else {
		bounds = r.object(field)
	}
	r.known[field] = true
	w := window{}
	for name, text := range bounds {
		seconds, err := strconv.ParseInt(text, 10, 64)
		if err != nil || !slices.Contains([]string{"eq", "gt", "gte", "lt", "lte"}, name) {
			r.refuse(invalid("", field, "%s is a Unix time, or one each of gt, gte, lt, lte.", field))
		}
		w[name] = seconds
	}
	return w
}

func (w window) covers(born int64) bool {
	for name, bound := range w {
		var inside bool
		switch name {
		case "gt":
			inside = born > bound
		case "gte":
			inside = born >= bound
		case "lt":
			inside = born < bound
		case "lte":
			inside = born <= bound
		default:
			inside = born == bound
		}
		if !inside {
			return false
		}
	}
	return true
}

// list answers one page, newest first. Items come oldest first, as they were born. Cursors are exclusive, and may name an object that
// the filters leave out.
func list[T listed](c *call, p page, items []T, keep func(T) bool, render func(T) object) (object, *apiError) {
	after, err := cursor(items, p.startingAfter, "starting_after")
	if err != nil {
		return nil, err
	}
	before, err := cursor(items, p.endingBefore, "ending_before")
	if err != nil {
		return nil, err
	}
	var found []T // newest first
	for _, item := range slices.Backward(items) {
		if p.created.covers(item.born()) && keep(item) && (after == 0 || item.place() < after) && item.place() > before {
			found = append(found, item)
		}
	}
	more := int64(len(found)) > p.limit
	switch {
	case more && p.endingBefore != "":
		found = found[int64(len(found))-p.limit:] // the nearest to the cursor
	case more:
		found = found[:p.limit]
	}
	data := []object{}
	for _, item := range found {
		data = append(data, render(item))
	}
	return object{"object": "list", "url": c.path, "has_more": more, "data": data}, nil
}

func cursor[T listed](items []T, id, param string) (int64, *apiError) {
	if id == "" {
		return 0, nil
	}
	for _, item := range items {
		if item.ident() == id {
			return item.place(), nil
		}
	}
	return 0, missing("object", param, id)
}
