package httpapi_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/stretchr/testify/require"

	"holdfast/internal/httpapi"
)

// contract is the served OpenAPI document, as a judge of answers.
type contract struct{ document *openapi3.T }

var loadContract = sync.OnceValues(func() (contract, error) {
	api, err := httpapi.New(fakes{}.config(), slog.New(slog.DiscardHandler))
	if err != nil {
		return contract{}, err
	}
	w := httptest.NewRecorder()
	api.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/openapi.json", nil))
	document, err := openapi3.NewLoader().LoadFromData(w.Body.Bytes())
	return contract{document}, err
})

func theContract(tb testing.TB) contract {
	tb.Helper()
	c, err := loadContract()
	require.NoError(tb, err)
	return c
}

// watched is a client whose every answer must be one that the document allows.
func watched(t *testing.T, client *http.Client) *http.Client {
	t.Helper()
	return &http.Client{Transport: watcher{t, theContract(t), client.Transport}}
}

// unwatched is for a test whose fakes answer on purpose what the real ones never do.
func (b *bed) unwatched(t *testing.T) {
	t.Helper()
	w, ok := b.http.Transport.(watcher)
	require.True(t, ok)
	b.http = &http.Client{Transport: w.next}
}

type watcher struct {
	t        *testing.T
	contract contract
	next     http.RoundTripper
}

func (w watcher) RoundTrip(r *http.Request) (*http.Response, error) {
	method, path := r.Method, r.URL.EscapedPath()
	resp, err := w.next.RoundTrip(r)
	if err != nil || resp.Header.Get("Content-Type") == "text/event-stream" {
		return resp, err
	}
	body, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err != nil { // cut off on purpose
		resp.Body = io.NopCloser(io.MultiReader(bytes.NewReader(body), cut{err}))
		return resp, nil //nolint:nilerr // whoever reads the body meets the error
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	if err := w.contract.allows(method, path, answer{resp.StatusCode, resp.Header, body}); err != nil {
		w.t.Errorf("%s %s: %d is not what the OpenAPI document says: %v\n%s", method, path, resp.StatusCode, err, body)
	}
	return resp, nil
}

type cut struct{ err error }

func (c cut) Read([]byte) (int, error) { return 0, c.err }

// allows says what is wrong with an answer: status, media type, headers, members, and a problem's code must be those
// of the operation.
func (c contract) allows(method, path string, a answer) error {
	if strings.HasPrefix(path, "/docs") || path == "/openapi.json" {
		return nil // pages, and the document itself
	}
	item := c.match(method, path)
	if item == nil {
		return c.onlyProblem(a, httpapi.CodeNotFound)
	}
	operation := item.Operations()[method] // GetOperation panics where a method is made up
	if method == http.MethodHead {
		operation = item.Get
	}
	if operation == nil {
		return c.onlyProblem(a, httpapi.CodeMethodNotAllowed)
	}
	documented := operation.Responses.Value(strconv.Itoa(a.status))
	if documented == nil {
		return fmt.Errorf("%s has no such status", operation.OperationID)
	}
	if err := headers(documented.Value, a.header); err != nil {
		return err
	}
	if a.status == http.StatusNoContent && len(a.body) == 0 && len(documented.Value.Content) == 0 {
		return nil
	}
	mediaType, _, err := mime.ParseMediaType(a.header.Get("Content-Type"))
	if err != nil {
		return err
	}
	content := documented.Value.Content[mediaType]
	if content == nil {
		return fmt.Errorf("media type %q", mediaType)
	}
	if method == http.MethodHead || mediaType == "text/event-stream" || mediaType == "text/csv" {
		return nil
	}
	value, err := conforms(content.Schema, a.body)
	if err != nil || a.status < http.StatusBadRequest {
		return err
	}
	code, _ := value["code"].(string)
	if !strings.Contains(*documented.Value.Description, "`"+code+"`:") {
		return fmt.Errorf("code %q is not listed for this status of %s", code, operation.OperationID)
	}
	return nil
}

// match finds the path's item: each segment as it is, or a parameter's. Of two, that which has the method, and then that with
// fewer parameters.
func (c contract) match(method, path string) (best *openapi3.PathItem) {
	segments := strings.Split(path, "/")
	least := 0
	if method == http.MethodHead {
		method = http.MethodGet
	}
	for template, item := range c.document.Paths.Map() {
		parts := strings.Split(template, "/")
		if len(parts) != len(segments) {
			continue
		}
		fits := true
		for i, part := range parts {
			plain, err := url.PathUnescape(segments[i])
			parameter := strings.HasPrefix(part, "{")
			fits = fits && err == nil && (part == plain || parameter && plain != "" && plain != "." && plain != "..")
		}
		rank := strings.Count(template, "{")
		if item.Operations()[method] == nil {
			rank += len(parts)
		}
		if fits && (best == nil || rank < least) {
			best, least = item, rank
		}
	}
	return best
}

// onlyProblem is what is answered where there is no operation.
func (c contract) onlyProblem(a answer, code httpapi.Code) error {
	value, err := conforms(c.document.Components.Schemas["Problem"], a.body)
	if err == nil && value["code"] != string(code) {
		return fmt.Errorf("code %v; there is no operation, so want %s", value["code"], code)
	}
	return err
}

// everyAnswer has these headers, and the document does not repeat them.
var everyAnswer = map[string]bool{
	"Content-Type": true, "Content-Length": true, "Date": true, "Connection": true, "X-Request-Id": true, "Cache-Control": true,
	"Content-Security-Policy": true, "X-Content-Type-Options": true, "Referrer-Policy": true, "Cross-Origin-Resource-Policy": true,
}

func headers(documented *openapi3.Response, sent http.Header) error {
	known := map[string]bool{}
	for name := range documented.Headers {
		known[http.CanonicalHeaderKey(name)] = true
	}
	for name := range sent {
		if !everyAnswer[name] && !known[name] {
			return fmt.Errorf("header %s is not documented", name)
		}
	}
	return nil
}

// conforms checks a JSON document against its schema, and that it has no member that the schema does not tell of:
// clients must take such members, but we must not give them unseen.
func conforms(schema *openapi3.SchemaRef, body []byte) (map[string]any, error) {
	var value map[string]any
	if err := json.Unmarshal(body, &value); err != nil {
		return nil, err
	}
	err := schema.Value.VisitJSON(value, openapi3.VisitAsResponse(), openapi3.EnableFormatValidation())
	if err != nil {
		return nil, err
	}
	return value, undocumented(schema.Value, value, "")
}

func undocumented(schema *openapi3.Schema, value any, at string) error {
	switch v := value.(type) {
	case []any:
		for i, item := range v {
			if schema.Items == nil {
				return fmt.Errorf("%s: items of no schema", at)
			}
			if err := undocumented(schema.Items.Value, item, fmt.Sprintf("%s[%d]", at, i)); err != nil {
				return err
			}
		}
	case map[string]any:
		if free := schema.AdditionalProperties.Has; free != nil && *free {
			return nil // the document says: of any shape
		}
		for name, member := range v {
			of := schema.AdditionalProperties.Schema
			if property, ok := schema.Properties[name]; ok {
				of = property
			}
			if of == nil {
				return fmt.Errorf("%s.%s is not documented", at, name)
			}
			if err := undocumented(of.Value, member, at+"."+name); err != nil {
				return err
			}
		}
	}
	return nil
}

// The judge itself: what it must not let pass.
func TestContractRefusesWhatIsNotDocumented(t *testing.T) {
	t.Parallel()
	c := theContract(t)
	problem := func(status int, code string) string {
		return fmt.Sprintf(`{"type":"urn:holdfast:problem:%s","title":"t","status":%d,"code":%q}`, code, status, code)
	}
	for name, a := range map[string]answer{
		"status":     {418, http.Header{"Content-Type": {"application/problem+json"}}, []byte(problem(418, "not_found"))},
		"media type": {200, http.Header{"Content-Type": {"text/html"}}, []byte("{}")},
		"shape":      {200, http.Header{"Content-Type": {"application/json"}}, []byte(`{"resources":null}`)},
		"member":     {200, http.Header{"Content-Type": {"application/json"}}, []byte(`{"resources":[],"secret":1}`)},
		"header":     {200, http.Header{"Content-Type": {"application/json"}, "Location": {"x"}}, []byte(`{"resources":[]}`)},
		"code":       {422, http.Header{"Content-Type": {"application/problem+json"}}, []byte(problem(422, "amount_too_small"))},
	} {
		require.Error(t, c.allows(http.MethodGet, "/v1/resources", a), name)
	}
	good := answer{200, http.Header{"Content-Type": {"application/json"}}, []byte(`{"resources":[]}`)}
	require.NoError(t, c.allows(http.MethodGet, "/v1/resources", good))
	require.Error(t, c.allows(http.MethodGet, "/v1/nowhere", good))
	require.Error(t, c.allows(http.MethodDelete, "/v1/resources", good))
}
