package stripesim

import (
	"cmp"
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// outageLag is how far search is behind while search_lag lasts, unless the fault says otherwise. Stripe's own word is an hour.
const outageLag = time.Hour

// version is an intent as the search index learned of it. Search answers from versions that are old enough, and from nothing else: what
// it finds has the state of then, and what it does not find may exist all the same.
type version struct {
	at   time.Time // virtual
	data json.RawMessage
}

// searchable is a version, and the part of it that a query may speak of.
type searchable struct {
	body     json.RawMessage
	ID       string            `json:"id"`
	Status   string            `json:"status"`
	Created  int64             `json:"created"`
	Amount   int64             `json:"amount"`
	Currency string            `json:"currency"`
	Customer string            `json:"customer"`
	Metadata map[string]string `json:"metadata"`
}

// index tells the search index of a change. The caller holds mu.
func (w *world) index(snapshot json.RawMessage) {
	w.versions = append(w.versions, version{at: w.now(), data: snapshot})
}

// indexed are the intents as the index knows them, the newest intent first. The caller holds mu.
func (w *world) indexed(lag time.Duration) []searchable {
	newest := map[string]searchable{}
	horizon := w.now().Add(-lag)
	for _, v := range w.versions {
		s := searchable{body: v.data}
		if !v.at.After(horizon) && json.Unmarshal(v.data, &s) == nil {
			newest[s.ID] = s
		}
	}
	var found []searchable
	for _, t := range slices.Backward(w.intents) {
		if s, known := newest[t.id]; known {
			found = append(found, s)
		}
	}
	return found
}

func prepareSearch(c *call) (execution, *apiError) {
	r := c.params.read()
	matches := parseQuery(r, r.required("query"))
	limit, page := int64(10), r.text("page")
	if r.present("limit") {
		limit = r.integer("limit")
		if limit < 1 || limit > 100 {
			r.refuse(invalid("parameter_invalid_integer", "limit", "limit is between 1 and 100."))
		}
	}
	c.expansions(r)
	if err := r.finish(); err != nil {
		return nil, err
	}
	return func(w *world) (object, *apiError) {
		lag := w.cfg.SearchLag
		if c.fault != nil && c.fault.Fault == faultSearchLag {
			lag = orDefault(time.Duration(c.fault.DelayMS)*time.Millisecond, outageLag)
		}
		known := w.indexed(lag)
		if page != "" {
			at := slices.IndexFunc(known, func(s searchable) bool { return "page_"+s.ID == page })
			if at < 0 {
				return nil, invalid("", "page", "%q is not a next_page of this search.", page)
			}
			known = known[at+1:]
		}
		data, last, next := []json.RawMessage{}, "", any(nil)
		for _, s := range known {
			if !matches(s) {
				continue
			}
			if int64(len(data)) == limit {
				next = "page_" + last
				break
			}
			data, last = append(data, s.body), s.ID
		}
		return object{"object": "search_result", "url": c.path, "has_more": next != nil, "next_page": next, "data": data}, nil
	}, nil
}

// A query is clauses with AND or a space between them: field:'value', or created and amount compared with a number.
var (
	queryClause = regexp.MustCompile(`^(?:(status|currency|customer|metadata\[(?:'[^']+'|"[^"]+")\]):('[^']*'|"[^"]*")|(created|amount)(:|>=|<=|>|<)(\d{1,18}))`)
	queryAnd    = regexp.MustCompile(`^\s+(?:(?i:AND)\s+)?`)
)

// parseQuery reads the part of Stripe's query language that can be modelled without guessing.
func parseQuery(r *reader, query string) func(searchable) bool {
	var wanted []func(searchable) bool
	for rest := strings.TrimSpace(query); ; {
		clause := queryClause.FindStringSubmatch(rest)
		if clause == nil {
			if query != "" {
				r.refuse(invalid("", "query", "This simulator searches by status, currency, customer and metadata['key'], each as field:'value', and by "+
					"created and amount, as field>=number, with AND between them. It does not understand %q.", rest))
			}
			return nil
		}
		wanted = append(wanted, condition(clause))
		rest = rest[len(clause[0]):]
		if rest == "" {
			break
		}
		rest = rest[len(queryAnd.FindString(rest)):]
	}
	return func(s searchable) bool {
		return !slices.ContainsFunc(wanted, func(met func(searchable) bool) bool { return !met(s) })
	}
}

// condition is what one clause asks.
func condition(clause []string) func(searchable) bool {
	if name, value := clause[1], strings.Trim(clause[2], `'"`); name != "" {
		return func(s searchable) bool { return s.text(name) == value }
	}
	name, operator := clause[3], clause[4]
	bound, _ := strconv.ParseInt(clause[5], 10, 64) // digits, and few enough
	return func(s searchable) bool {
		value := s.Created
		if name == "amount" {
			value = s.Amount
		}
		order := cmp.Compare(value, bound)
		return order == 0 && operator != "<" && operator != ">" || order < 0 && operator[0] == '<' || order > 0 && operator[0] == '>'
	}
}

func (s searchable) text(name string) string {
	switch name {
	case "status":
		return s.Status
	case "currency":
		return s.Currency
	case "customer":
		return s.Customer
	default:
		return s.Metadata[strings.Trim(strings.TrimPrefix(name, "metadata"), `[]'"`)]
	}
}
