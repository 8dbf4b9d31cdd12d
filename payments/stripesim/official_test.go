package stripesim_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/stretchr/testify/require"
	"github.com/stripe/stripe-mock/embedded"
	"github.com/stripe/stripe-mock/param"
	"github.com/stripe/stripe-mock/param/coercer"
	"github.com/stripe/stripe-mock/spec"

	"holdfast/payments/stripesim"
)

// official is Stripe's own description of this API version: what its responses look like, and what a request may look like. The
// latter is judged by the parts of Stripe's own mock server, which as a whole prints every request. Read once per test binary.
type official struct {
	responses  *openapi3.T
	requests   spec.Spec
	components *spec.ComponentsForValidation

	mu         sync.Mutex // these were not made for many
	validators map[*spec.Operation]*requestValidator
}

var theOfficial = sync.OnceValues(func() (*official, error) {
	raw, err := partOfDescription("/v1/payment_intents", "/v1/charges", "/v1/refunds", "/v1/disputes", "/v1/balance", "/v1/balance_transactions", "/v1/payouts", "/v1/customers", "/v1/reporting", "/v1/files", "/v1/events", "/v1/payment_methods", "/v1/account")
	if err != nil {
		return nil, err
	}
	o := &official{validators: map[*spec.Operation]*requestValidator{}}
	if o.responses, err = openapi3.NewLoader().LoadFromData(raw); err != nil {
		return nil, err
	}
	for _, schema := range o.responses.Components.Schemas {
		closeSchema(schema.Value)
	}
	if err := json.Unmarshal(raw, &o.requests); err != nil {
		return nil, err
	}
	o.components = spec.GetComponentsForValidation(&o.requests.Components)
	return o, nil
})

var errNoOperation = errors.New("the description has no such operation")

// partOfDescription is the description without the paths that are not modelled: reading all of it takes seconds.
func partOfDescription(prefixes ...string) ([]byte, error) {
	var whole, paths map[string]json.RawMessage
	if err := json.Unmarshal(embedded.OpenAPISpec, &whole); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(whole["paths"], &paths); err != nil {
		return nil, err
	}
	for path := range paths {
		if !slices.ContainsFunc(prefixes, func(prefix string) bool { return path == prefix || strings.HasPrefix(path, prefix+"/") }) {
			delete(paths, path)
		}
	}
	var err error
	if whole["paths"], err = json.Marshal(paths); err != nil {
		return nil, err
	}
	return json.Marshal(whole)
}

// closeSchema makes a schema refuse the fields it does not name. The description leaves them open; a field that this version does
// not have would pass.
func closeSchema(schema *openapi3.Schema) {
	if len(schema.Properties) > 0 && schema.AdditionalProperties.Has == nil && schema.AdditionalProperties.Schema == nil {
		closed := false
		schema.AdditionalProperties.Has = &closed
	}
	inside := slices.Concat(schema.AnyOf, schema.OneOf, schema.AllOf)
	for _, property := range schema.Properties {
		inside = append(inside, property)
	}
	if schema.Items != nil {
		inside = append(inside, schema.Items)
	}
	for _, ref := range inside {
		if ref.Ref == "" { // the others have their own turn
			closeSchema(ref.Value)
		}
	}
}

// response says how an answer differs from the description, if it does.
func (o *official) response(method, path string, status int, raw []byte) error {
	var body any
	if err := json.Unmarshal(raw, &body); err != nil {
		return err
	}
	schema := o.responses.Components.Schemas["error"]
	if status == http.StatusOK {
		item := o.responses.Paths.Value(o.pattern(path))
		if item == nil || item.GetOperation(method) == nil {
			return errNoOperation
		}
		schema = item.GetOperation(method).Responses.Status(http.StatusOK).Value.Content.Get("application/json").Schema
	}
	if err := schema.Value.VisitJSON(body); err != nil {
		return err
	}
	return o.snapshots(body)
}

// snapshots looks into events: to the description, what happened to an object is any object at all.
func (o *official) snapshots(body any) error {
	fields, _ := body.(map[string]any)
	if items, isList := fields["data"].([]any); isList {
		for _, item := range items {
			if err := o.snapshots(item); err != nil {
				return err
			}
		}
		return nil
	}
	if fields["object"] != "event" {
		return nil
	}
	data, _ := fields["data"].(map[string]any)
	snapshot, _ := data["object"].(map[string]any)
	name, _ := snapshot["object"].(string)
	schema := o.responses.Components.Schemas[name]
	if schema == nil {
		return fmt.Errorf("the event %v is about a %q", fields["type"], name)
	}
	return schema.Value.VisitJSON(snapshot)
}

// pattern finds which of the description's paths is asked for. One without parameters is preferred.
func (o *official) pattern(path string) string {
	path = strings.ReplaceAll(path, "//", "/")
	if o.responses.Paths.Value(path) != nil {
		return path
	}
	segments := strings.Split(path, "/")
	for pattern := range o.responses.Paths.Map() {
		if slices.EqualFunc(strings.Split(pattern, "/"), segments, func(want, segment string) bool {
			return want == segment || strings.HasPrefix(want, "{")
		}) {
			return pattern
		}
	}
	return ""
}

// request says why Stripe's mock server would refuse a request, if it would. It knows parameters, and no objects and no keys.
func (o *official) request(r *http.Request) error {
	operation := o.requests.Paths[spec.Path(o.pattern(r.URL.Path))][spec.HTTPVerb(strings.ToLower(r.Method))]
	if operation == nil {
		return errNoOperation
	}
	copied := r.Clone(r.Context())
	copied.Body = http.NoBody
	if r.GetBody != nil {
		body, err := r.GetBody()
		if err != nil {
			return err
		}
		copied.Body = body
	}
	given, err := param.ParseParams(copied)
	if err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	v, err := o.validator(r.Method, operation)
	if err != nil {
		return err
	}
	if err := coercer.CoerceParams(v.schema, given); err != nil {
		return fmt.Errorf("%w in %v", err, given)
	}
	if err := v.validate(given); err != nil {
		return fmt.Errorf("%w in %v", err, given)
	}
	return nil
}

// validator is as the mock server makes it.
func (o *official) validator(method string, operation *spec.Operation) (*requestValidator, error) {
	if v := o.validators[operation]; v != nil {
		return v, nil
	}
	v := &requestValidator{}
	components := o.components
	if method == http.MethodGet {
		v.schema, components = spec.BuildQuerySchema(operation), nil
	} else {
		v.schema = operation.RequestBody.Content["application/x-www-form-urlencoded"].Schema
	}
	compiled, err := spec.GetValidatorForOpenAPI3Schema(v.schema, components)
	if err != nil {
		return nil, err
	}
	v.validate = compiled.Validate
	o.validators[operation] = v
	return v, nil
}

// requestValidator holds one operation's parameters against its schema.
type requestValidator struct {
	schema   *spec.Schema
	validate func(parameters any) error
}

// inspected is a transport that holds every exchange with the API against the description: each answer must be one of Stripe's, and
// each request that the simulator accepts must be one that Stripe would.
type inspected struct {
	t       *testing.T
	next    http.RoundTripper
	spoiled func(requestID string) bool // whether an answer is meant to be none of Stripe's
	against *official
}

// inspect wraps a transport of this bundle's clients.
func (b *testBundle) inspect(t *testing.T, next http.RoundTripper) http.RoundTripper {
	t.Helper()
	against, err := theOfficial()
	require.NoError(t, err)
	return &inspected{t: t, next: next, spoiled: b.spoiled, against: against}
}

func (b *testBundle) spoiled(requestID string) bool {
	return slices.ContainsFunc(b.Journal(0), func(e stripesim.JournalEntry) bool {
		return e.RequestID == requestID && (e.Fault == "bad_body" || strings.HasPrefix(e.Fault, "html_"))
	})
}

func (i *inspected) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := i.next.RoundTrip(r)
	if err != nil || !strings.HasPrefix(r.URL.Path, "/v1/") || strings.HasPrefix(res.Header.Get("Content-Type"), "text/csv") {
		return res, err
	}
	raw, cut := io.ReadAll(res.Body)
	_ = res.Body.Close()
	res.Body = io.NopCloser(bytes.NewReader(raw))
	if cut != nil {
		res.Body = io.NopCloser(io.MultiReader(bytes.NewReader(raw), iotest.ErrReader(cut)))
	}
	if cut != nil || i.spoiled(res.Header.Get("Request-Id")) {
		return res, nil //nolint:nilerr // whoever reads the body meets the error
	}
	if err := i.against.response(r.Method, r.URL.Path, res.StatusCode, raw); err != nil {
		i.t.Errorf("%s %s: the answer is none of Stripe's: %v\n%s", r.Method, r.URL, err, raw)
	}
	if res.StatusCode == http.StatusOK && res.Header.Get("Idempotent-Replayed") == "" {
		if err := i.against.request(r); err != nil {
			i.t.Errorf("%s %s: accepted here, and refused by Stripe: %v", r.Method, r.URL, err)
		}
	}
	return res, nil
}
