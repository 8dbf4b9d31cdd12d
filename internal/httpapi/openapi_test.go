package httpapi_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/internal/httpapi"
	"holdfast/payments"
)

type schema struct {
	Ref                  string            `json:"$ref"`
	Type                 any               `json:"type"` // one, or several
	Properties           map[string]schema `json:"properties"`
	Items                *schema           `json:"items"`
	Required             []string          `json:"required"`
	AdditionalProperties any               `json:"additionalProperties"`
	Enum                 []string          `json:"enum"`
	Description          string            `json:"description"`
	MinLength, MaxLength int
	Minimum, Maximum     int64
	MaxProperties        int
}

type document struct {
	OpenAPI string `json:"openapi"`
	Info    struct {
		Title, Version, Description string
	} `json:"info"`
	Paths map[string]map[string]struct {
		OperationID string                `json:"operationId"`
		Summary     string                `json:"summary"`
		Security    []map[string][]string `json:"security"`
		Parameters  []struct {
			Name, In string
			Required bool
			Schema   *schema
		} `json:"parameters"`
		RequestBody *struct {
			Required bool
			Content  map[string]struct{ Schema schema }
		} `json:"requestBody"`
		Responses map[string]struct {
			Description string
			Content     map[string]struct{ Schema schema }
		} `json:"responses"`
	} `json:"paths"`
	Components struct {
		Schemas         map[string]schema
		SecuritySchemes map[string]any
	} `json:"components"`
}

func readDocument(t *testing.T) (document, string) {
	t.Helper()
	a := faked(t, fakes{}).get(t, "/openapi.json")
	require.Equal(t, http.StatusOK, a.status)
	require.Equal(t, "application/json", a.header.Get("Content-Type"))
	var d document
	require.NoError(t, json.Unmarshal(a.body, &d))
	return d, string(a.body)
}

// The rules of OpenAPI 3.1 that a generator can break: references that lead nowhere, operations without answers or with
// one id twice, path parameters that the path does not have.
func TestOpenAPIHoldsTogether(t *testing.T) {
	t.Parallel()
	d, text := readDocument(t)
	require.Regexp(t, `^3\.1\.\d+$`, d.OpenAPI)
	require.NotEmpty(t, d.Info.Title)
	require.NotEmpty(t, d.Info.Version)
	for _, ref := range regexp.MustCompile(`"\$ref":"([^"]+)"`).FindAllStringSubmatch(text, -1) {
		name, ok := strings.CutPrefix(ref[1], "#/components/schemas/")
		require.True(t, ok, ref[1])
		require.Contains(t, d.Components.Schemas, name)
	}
	for name, s := range d.Components.Schemas {
		for _, required := range s.Required {
			require.Contains(t, s.Properties, required, name)
		}
	}
	var ids []string
	for path, item := range d.Paths {
		for method, op := range item {
			ids = append(ids, op.OperationID)
			require.NotEmpty(t, op.Summary, path)
			var inPath []string
			for _, p := range op.Parameters {
				require.NotNil(t, p.Schema, p.Name)
				if p.In == "path" {
					require.True(t, p.Required)
					inPath = append(inPath, "{"+p.Name+"}")
				}
			}
			require.ElementsMatch(t, regexp.MustCompile(`\{\w+\}`).FindAllString(path, -1), inPath, "%s %s", method, path)
			require.NotEmpty(t, op.Responses)
			for status, r := range op.Responses {
				code, err := strconv.Atoi(status)
				require.NoError(t, err)
				require.NotEmpty(t, r.Description)
				if code >= 400 {
					require.Equal(t, "#/components/schemas/Problem", r.Content["application/problem+json"].Schema.Ref, "%s %s %s", method, path, status)
				}
			}
			for _, use := range op.Security {
				for scheme := range use {
					require.Contains(t, d.Components.SecuritySchemes, scheme)
				}
			}
			require.Equal(t, strings.HasPrefix(path, "/v1/"), len(op.Security) > 0, path)
		}
	}
	slices.Sort(ids)
	require.Equal(t, []string{
		"cancel-booking", "change-payment", "continue-run", "create-booking", "decide-request", "discard-effect", "end-run", "get-booking", "get-effect",
		"get-exception", "get-overview", "get-payout", "get-report", "get-resource", "get-run", "get-timeline", "health", "list-actions",
		"list-bookings", "list-effects", "list-exceptions", "list-pauses", "list-payouts", "list-refunds", "list-requests", "list-resources",
		"list-run-items", "list-runs", "note-exception", "preview-act", "preview-cancellation", "preview-run", "ready", "receive-stripe-webhook",
		"replay-effect", "republish-effect", "request-refund", "resolve-effect", "set-pause", "sign-off-exception", "sign-off-period", "start-run",
		"stream-booking",
	}, ids)
}

func TestOpenAPIListsEveryCode(t *testing.T) {
	t.Parallel()
	d, text := readDocument(t)
	var codes []string
	for _, code := range httpapi.Codes() {
		codes = append(codes, string(code))
		require.Contains(t, text, "`"+string(code)+"`:", "no operation lists it")
	}
	require.Equal(t, codes, d.Components.Schemas["Problem"].Properties["code"].Enum)
}

func TestOpenAPIExplainsEveryStatus(t *testing.T) {
	t.Parallel()
	d, _ := readDocument(t)
	booking, payment := d.Components.Schemas["Booking"], d.Components.Schemas["Payment"]
	explains(t, domain.BookingStatuses(), booking.Properties["status"])
	explains(t, domain.EndingReasons(), booking.Properties["ending_reason"])
	explains(t, domain.PaymentStatuses(), payment.Properties["status"])
	for _, p := range d.Paths["/v1/bookings"]["get"].Parameters {
		if p.Name == "status" {
			require.Equal(t, fmt.Sprint(domain.BookingStatuses()), fmt.Sprint(p.Schema.Items.Enum))
		}
	}
	require.NotContains(t, payment.Required, "failure_code")
	detail, action := d.Components.Schemas["BookingDetail"], d.Components.Schemas["NextAction"]
	explains(t, domain.BookingStatuses(), detail.Properties["status"])
	explains(t, domain.EndingReasons(), detail.Properties["ending_reason"])
	explains(t, payments.CancelOutcomes(), d.Components.Schemas["CancellationPreview"].Properties["outcome"])
	explains(t, []payments.ActionType{payments.ActionRedirect, payments.ActionSDK}, action.Properties["type"])
	require.Equal(t, []string{"type", "client_secret"}, action.Required)
	require.NotContains(t, booking.Properties, "next_action", "lists, streams and stored answers have no place for it")
	require.Equal(t, booking.Required, detail.Required)
	require.Equal(t, "#/components/schemas/BookingDetail", d.Paths["/v1/bookings/{id}"]["get"].Responses["200"].Content["application/json"].Schema.Ref)
	require.Contains(t, d.Components.Schemas["BookingRequest"].Properties["start"].Description, "may be in the past")
}

func explains[T ~string](t *testing.T, values []T, s schema) {
	t.Helper()
	names := make([]string, 0, len(values))
	for _, v := range values {
		names = append(names, string(v))
		require.Regexp(t, "(?m)^`"+string(v)+"`: .+", s.Description)
	}
	require.ElementsMatch(t, names, s.Enum)
}

func TestOpenAPITellsTheIdempotencyRules(t *testing.T) {
	t.Parallel()
	d, _ := readDocument(t)
	for _, rule := range []string{
		"Idempotency-Key", "1 to 255 visible ASCII", "quoted string", "idempotency_key_reused", "request_in_progress", "Idempotency-Replayed: true",
		"byte for byte", "slot_unavailable or price_changed", "Idempotency-Key-Expires", "idempotency_key_expired", "never a second booking", "new key",
	} {
		require.Contains(t, d.Info.Description, rule)
	}
	create := d.Paths["/v1/bookings"]["post"]
	require.True(t, create.RequestBody.Required)
	require.Equal(t, "#/components/schemas/BookingRequest", create.RequestBody.Content["application/json"].Schema.Ref)
	require.Len(t, create.RequestBody.Content, 1)
	require.Equal(t, "#/components/schemas/Booking", create.Responses["201"].Content["application/json"].Schema.Ref)
	require.Equal(t, "Idempotency-Key", create.Parameters[0].Name)
	require.True(t, create.Parameters[0].Required)
}

// The limits in the document are those of the code.
func TestOpenAPIStatesTheLimitsThatApply(t *testing.T) {
	t.Parallel()
	d, _ := readDocument(t)
	request, buyer, money := d.Components.Schemas["BookingRequest"], d.Components.Schemas["Customer"], d.Components.Schemas["MoneyRequest"]
	require.Equal(t, false, request.AdditionalProperties)
	require.ElementsMatch(t, []string{"resource_id", "start", "end", "customer", "payment_method"}, request.Required)
	good := (&bed{resource: domain.Resource{ID: domain.NewID[domain.ResourceID]()}}).body
	valid := func(path string, v any) bool {
		_, err := httpapi.DecodeBooking([]byte(good(set(path, v))))
		return err == nil
	}
	for path, limit := range map[string]schema{
		"payment_method": request.Properties["payment_method"],
		"customer.name":  buyer.Properties["name"],
	} {
		require.True(t, valid(path, strings.Repeat("a", limit.MinLength)), path)
		require.True(t, valid(path, strings.Repeat("a", limit.MaxLength)), path)
		require.False(t, valid(path, strings.Repeat("a", limit.MinLength-1)), path)
		require.False(t, valid(path, strings.Repeat("a", limit.MaxLength+1)), path)
	}
	longest := buyer.Properties["email"].MaxLength
	address := func(n int) string { return strings.Repeat("a", n-len("@b.example")) + "@b.example" }
	require.True(t, valid("customer.email", address(longest)))
	require.False(t, valid("customer.email", address(longest+1)))
	for path, limit := range map[string]schema{"quantity": request.Properties["quantity"], "expected_total.amount": money.Properties["amount"]} {
		require.True(t, valid(path, limit.Minimum), path)
		require.True(t, valid(path, limit.Maximum), path)
		require.False(t, valid(path, limit.Minimum-1), path)
		require.False(t, valid(path, limit.Maximum+1), path)
	}
	most := request.Properties["metadata"].MaxProperties
	require.True(t, valid("metadata", many(most)))
	require.False(t, valid("metadata", many(most+1)))
	value, ok := request.Properties["metadata"].AdditionalProperties.(map[string]any)
	require.True(t, ok)
	require.Equal(t, "500", fmt.Sprint(value["maxLength"]))
}

// The page loads nothing from elsewhere and runs nothing inline.
func TestDocsPageIsSelfContained(t *testing.T) {
	t.Parallel()
	b := faked(t, fakes{})
	for path, contentType := range map[string]string{"/docs": "text/html", "/docs/docs.js": "text/javascript", "/docs/docs.css": "text/css"} {
		a := b.send(t, http.MethodGet, path, nil)
		require.Equal(t, http.StatusOK, a.status, path)
		require.Contains(t, a.header.Get("Content-Type"), contentType)
		policy := a.header.Get("Content-Security-Policy")
		require.Contains(t, policy, "default-src 'none'")
		require.NotContains(t, policy, "unsafe")
		require.NotContains(t, policy, "http")
		text := string(a.body)
		require.NotRegexp(t, `(src|href|url|import)\W{1,3}(https?:)?//`, text, path)
		for _, forbidden := range []string{"innerHTML", "outerHTML", "eval(", "onclick", "style=", "<style", "javascript:"} {
			require.NotContains(t, text, forbidden, path)
		}
		require.Equal(t, strings.Count(text, `<script src="/docs/docs.js" defer></script>`), strings.Count(text, "<script"), "inline script")
	}
}
