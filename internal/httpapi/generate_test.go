package httpapi_test

import (
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/uuid"
)

// generator makes requests from the OpenAPI document: valid ones, and ones with something wrong somewhere.
type generator struct {
	rng        *rand.Rand
	contract   contract
	operations []target
	resources  []string // ids that exist
	bookings   []string // ids that exist
	tokens     []string // the good one first
	operator   string   // the good one of the operators
	finance    string   // that of finance
	desk       []string // ids of effects, runs and requests that exist
	keys       []string // sent before
}

// target is one operation and where it is.
type target struct {
	method, path string
	item         *openapi3.PathItem
	operation    *openapi3.Operation
}

func targets(c contract) (all []target) {
	for path, item := range c.document.Paths.Map() {
		for method, operation := range item.Operations() {
			all = append(all, target{method, path, item, operation})
		}
	}
	slices.SortFunc(all, func(a, b target) int { return strings.Compare(a.path+a.method, b.path+b.method) })
	return all
}

// made is a generated request.
type made struct {
	method, path, query string
	header              http.Header
	body                string
	key                 string
}

func (g *generator) request() made {
	of := g.operations[g.rng.IntN(len(g.operations))]
	if g.once(3) { // most of what can go wrong is in writing
		of = g.operations[slices.IndexFunc(g.operations, func(t target) bool { return t.method == http.MethodPost && t.path == "/v1/bookings" })]
	}
	m := made{method: of.method, path: of.path, header: http.Header{}}
	query := url.Values{}
	for _, ref := range append(slices.Clone(of.item.Parameters), of.operation.Parameters...) {
		p := ref.Value
		switch {
		case p.In == "path":
			m.path = strings.ReplaceAll(m.path, "{"+p.Name+"}", url.PathEscape(g.id(of.path)))
		case p.In == "query" && g.once(2):
			query[p.Name] = g.parameter(p)
		}
	}
	if g.once(20) {
		query.Set(g.text(), g.text())
	}
	m.query = query.Encode()
	if g.once(50) {
		m.query += "&%zz;=" + g.text()
	}
	g.headers(&m, of.path)
	if body := of.operation.RequestBody; body != nil {
		m.body = g.body(body.Value.Content["application/json"].Schema.Value)
	}
	switch {
	case g.once(40):
		m.method = []string{http.MethodPut, http.MethodDelete, http.MethodPatch, http.MethodOptions, http.MethodHead, "BREW"}[g.rng.IntN(6)]
	case g.once(60):
		m.path += []string{"/", "/x", "%2f", "/..", "%00", "x"}[g.rng.IntN(6)]
	}
	return m
}

// once is true once in n times.
func (g *generator) once(n int) bool { return g.rng.IntN(n) == 0 }

func pick[T any](g *generator, of []T) T { return of[g.rng.IntN(len(of))] }

func (g *generator) id(path string) string {
	known := g.bookings
	switch {
	case strings.Contains(path, "/finance/payouts/"):
		known = []string{"po_1"}
	case strings.HasPrefix(path, "/v1/finance/"):
		known = []string{"1", "2"}
	case strings.Contains(path, "/pauses/"):
		known = []string{"charge", "publish"}
	case strings.HasPrefix(path, "/v1/ops/") && !strings.Contains(path, "bookings"):
		known = g.desk
	case strings.Contains(path, "resources"), len(known) == 0:
		known = g.resources
	}
	if g.once(5) {
		return pick(g, []string{uuid.NewString(), "x", strings.ToUpper(known[0]), g.text() + "x", "0", "null", strings.Repeat("a", 300)})
	}
	return pick(g, known)
}

func (g *generator) parameter(p *openapi3.Parameter) []string {
	schema := p.Schema.Value
	if schema.Items != nil {
		schema = schema.Items.Value
	}
	value := pick(g, []string{"", "0", "-1", "1", "1001", "9999999999999999999", "1e3", "NaN", g.text()})
	switch {
	case g.once(4):
	case p.Name == "zone":
		value = pick(g, []string{"UTC", "Europe/Berlin", "Pacific/Kiritimati"})
	case schema.Format == "date":
		value = pick(g, []string{"2027-03-01", "2027-03-28", "2027-04-01", "2000-01-01", "2100-12-31", "0000-01-01"})
	case p.Name == "after" && schema.Type.Is("integer"):
		value = pick(g, []string{"0", "1"})
	case p.Name == "after" || strings.HasSuffix(p.Name, "_id"):
		value = pick(g, append(slices.Clone(g.resources), g.bookings...))
	case p.Name == "older_than":
		value = pick(g, []string{"1ns", "15m", "2000000h"})
	case p.Name == "from" && schema.Type.Is("string") || p.Name == "to":
		value = g.start().Format(time.RFC3339)
	case len(schema.Enum) > 0:
		value, _ = pick(g, schema.Enum).(string)
	case schema.Type.Is("integer"):
		value = pick(g, []string{"1", "2", "1000"})
	}
	values := []string{value}
	if g.once(10) {
		values = append(values, value)
	}
	return values
}

func (g *generator) headers(m *made, path string) {
	m.header.Set("Authorization", "Bearer "+g.tokens[0])
	if strings.HasPrefix(path, "/v1/ops/") {
		m.header.Set("Authorization", "Bearer "+g.operator)
	}
	if strings.HasPrefix(path, "/v1/finance/") {
		m.header.Set("Authorization", "Bearer "+g.finance)
	}
	m.header.Set("Content-Type", "application/json")
	m.key = uuid.NewString()
	if len(g.keys) > 0 && g.once(5) {
		m.key = pick(g, g.keys)
	}
	g.keys = append(g.keys, m.key)
	m.header.Set("Idempotency-Key", m.key)
	if !g.once(6) {
		return
	}
	switch g.rng.IntN(9) {
	case 0:
		m.header.Set("Authorization", "Bearer "+pick(g, g.tokens))
	case 1:
		m.header.Set("Authorization", pick(g, []string{"", "Bearer", "Basic eDp5", "Bearer  x", g.text()}))
	case 2:
		m.header.Add("Authorization", "Bearer "+g.tokens[0])
	case 3:
		m.header.Del("Authorization")
	case 4:
		m.header.Set("Content-Type", pick(g, []string{"", "text/plain", "application/json; charset=latin1", "application/json;charset=UTF-8", ";", g.text()}))
	case 5:
		m.header.Set("Idempotency-Key", pick(g, []string{"", `"`, `"` + m.key + `"`, "a b", strings.Repeat("k", 256), g.text()}))
	case 6:
		m.header.Add("Idempotency-Key", m.key)
	case 7:
		m.header.Del("Idempotency-Key")
	case 8:
		m.header.Set("Content-Encoding", "gzip")
	}
}

// body makes a document of a schema and, one time in two, spoils it: a value somewhere in it, or its bytes.
func (g *generator) body(schema *openapi3.Schema) string {
	value := g.value(schema, "")
	if g.once(100) {
		return strings.Repeat(" ", 64<<10) + "{}" // longer than is read
	}
	spoil := g.once(2)
	if spoil && !g.once(4) {
		value = g.mutate(value)
		spoil = false
	}
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	if spoil {
		text = g.damage(text)
	}
	return string(text)
}

// value makes a value that the schema allows.
func (g *generator) value(schema *openapi3.Schema, name string) any {
	switch {
	case name == "resource_id" && g.once(20):
		return uuid.NewString()
	case name == "resource_id":
		return pick(g, g.resources)
	case schema.Type.Is("object"):
		return g.object(schema)
	case len(schema.Enum) > 0:
		return pick(g, schema.Enum)
	case schema.Type.Is("integer"):
		return g.rng.IntN(3) + 1
	case schema.Type.Is("boolean"):
		return g.once(2)
	case schema.Type.Is("string") && len(schema.Examples) > 0 && !g.once(5):
		return schema.Examples[0]
	case schema.Format == "email":
		return g.word(1, 20) + "@example.org"
	case schema.Format == "date-time":
		return g.start().Format(time.RFC3339)
	case schema.Type.Is("string") && schema.MaxLength != nil:
		return g.word(int(schema.MinLength), int(*schema.MaxLength))
	default:
		return g.word(3, 3)
	}
}

func (g *generator) object(schema *openapi3.Schema) map[string]any {
	object := map[string]any{}
	for _, name := range sortedKeys(schema.Properties) {
		if slices.Contains(schema.Required, name) || g.once(2) {
			object[name] = g.value(schema.Properties[name].Value, name)
		}
	}
	if more := schema.AdditionalProperties.Schema; more != nil {
		for range g.rng.IntN(4) {
			object[g.word(1, 40)] = g.value(more.Value, "")
		}
	}
	_, starts := object["start"]
	if _, ends := object["end"]; starts && ends { // two instants that fit each other, as no schema can say
		start := g.start()
		object["start"], object["end"] = start.Format(time.RFC3339), start.Add(time.Duration(1+g.rng.IntN(3))*time.Hour).Format(time.RFC3339)
	}
	return object
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func (g *generator) start() time.Time {
	return time.Date(2031, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(g.rng.IntN(20000)) * time.Hour)
}

func (g *generator) word(shortest, longest int) string {
	letters := make([]byte, shortest+g.rng.IntN(min(longest, 600)-shortest+1))
	for i := range letters {
		letters[i] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"[g.rng.IntN(52)]
	}
	return string(letters)
}

// text is what nobody expects in a text.
func (g *generator) text() string {
	return pick(g, []string{
		"", " ", "\x00", "\x1f", "\u2028", "\ufffd", "é", "😀", "\u202eabc", `"`, "'; --", "%s", "${x}", "4242424242424242",
		strings.Repeat("a", 600), "null", "true", "2027-05-01T10:00:00", "2027-02-30T10:00:00Z", "9999-12-31T23:59:59Z", "a@b", "\r\nX: y",
	})
}

// mutate changes one value somewhere below v.
func (g *generator) mutate(v any) any {
	object, ok := v.(map[string]any)
	if !ok || len(object) == 0 || g.once(12) {
		return g.odd()
	}
	name := pick(g, sortedKeys(object))
	switch g.rng.IntN(5) {
	case 0:
		delete(object, name)
	case 1:
		object[g.text()] = object[name]
	default:
		object[name] = g.mutate(object[name])
	}
	return object
}

// odd is a value of any kind.
func (g *generator) odd() any {
	return pick(g, []any{
		nil, true, 0, -1, 1.5, json.Number("1e400"), json.Number("9223372036854775808"), json.Number("-0"), json.Number("1.0"), 1000, 1001,
		[]any{},
		[]any{nil},
		map[string]any{},
		map[string]any{"a": map[string]any{"b": nil}},
		g.text(), g.text(), g.text(),
		strings.Repeat("x", g.rng.IntN(80_000)),
	})
}

// damage spoils the bytes of a document.
func (g *generator) damage(text []byte) []byte {
	at := g.rng.IntN(len(text))
	switch g.rng.IntN(6) {
	case 0:
		return text[:at]
	case 1:
		text[at] = byte(g.rng.IntN(256))
		return text
	case 2:
		return append(text, text...)
	case 3:
		return slices.Insert(text, at, []byte(pick(g, []string{`\ud800`, "\xff", "{", "]", ",", `"x":1,`, "\x00"}))...)
	case 4:
		return []byte(strings.Repeat("[", 1+g.rng.IntN(100)))
	default:
		return []byte(strings.Replace(string(text), "{", `{"quantity":1,"quantity":2,`, 1))
	}
}
