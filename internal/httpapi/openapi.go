package httpapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"holdfast/internal/operator"
)

const apiVersion = "1.0.0"

const overview = `Holdfast takes a booking and the money for it. It decides each intention once, however often it is sent.

# Idempotency

Every POST under /v1 needs an Idempotency-Key header, but the payment provider's and those of bulk acts. A PUT needs none: sent again it changes nothing more.

- A key is 1 to 255 visible ASCII characters, bare or as a quoted string; both forms name the same key. Missing: 400 idempotency_key_missing. Anything else, and more than one header: 400 idempotency_key_malformed. A random UUID per intention is a good key.
- One key, one intention. A changed booking is a new intention and needs a new key. Two keys are two intentions, even with equal parameters.
- A key belongs to your client, the method and the path. Other clients' keys never meet yours.
- Same key, same parameters: the stored status, body and Location, byte for byte, with Idempotency-Replayed: true. The order of members, white space and the way an instant is written make no difference.
- Same key, other parameters: 422 idempotency_key_reused.
- Same key while the first request is still running: waits up to 2 seconds, then 409 request_in_progress with Retry-After. That is no evidence that there is no booking.
- Stored and replayed is what was decided: the booking, or slot_unavailable or price_changed. A late duplicate of a refused request never turns into a booking.
- Not stored are refusals before that (400, 401, 403, 404, 408, 413, 415, 422) and all that passes (409 request_in_progress, 5xx): the key stays free.
- After a lost connection, a time-out or a 5xx, always send the same request again with the same key: you get the booking that was made, or make it now.
- Answers are kept at least until Idempotency-Key-Expires, 24 hours by default. After it the same key answers 409 idempotency_key_expired with the booking's Location. There is never a second booking.

# Money, time and errors

Amounts are whole minor units with an ISO 4217 code: 2500 EUR is 25.00 euros, 2500 JPY is 2500 yen. The price comes from the resource; send expected_total to be refused (409 price_changed) if it is not what you have shown.

Instants are RFC 3339. Requests must give an offset; answers are in UTC with microseconds. Bookings are half-open: the end is the first moment after.

Every refusal is an RFC 9457 problem document (application/problem+json) with a stable code. Answers carry X-Request-Id: quote it when you ask us.`

// describe begins the OpenAPI document.
func (s *Server) describe() huma.Config {
	return humaConfig(&huma.OpenAPI{
		OpenAPI: "3.1.0",
		Info:    &huma.Info{Title: "Holdfast", Version: apiVersion, Description: overview},
		Tags: []*huma.Tag{
			{Name: "Bookings", Description: "Take a booking, and look at it."},
			{Name: "Refunds", Description: "For operators and finance: give money back."},
			{Name: operatorsTag, Description: "For the person on call: what is stuck and why, and the acts that set it going again. Each act is a permission of its own; the audit names the client of the token, so give every person a client of their own."},
			{Name: financeTag, Description: "For the person who closes the month: our books against the payment provider's, and what does not match. The audit names the client of the token."},
			{Name: "Resources", Description: "What can be booked."},
			{Name: "Webhooks", Description: "For the payment provider."},
			{Name: "Health", Description: "For load balancers and supervisors."},
		},
		Components: &huma.Components{
			Schemas: huma.NewMapRegistry("#/components/schemas/", operatorNamer),
			SecuritySchemes: map[string]*huma.SecurityScheme{
				"signature": {Type: "apiKey", In: "header", Name: "Stripe-Signature", Description: "t=…,v1=…: HMAC-SHA256 over the time and the body, by the secret of the endpoint."},
				"token":     {Type: "http", Scheme: "bearer", Description: "An API token, hf_…, with the scope that the operation names."},
			},
		},
	})
}

func describeCreateBooking(gate huma.Middlewares) huma.Operation {
	return decides(huma.Operation{
		OperationID: "create-booking", Method: http.MethodPost, Path: "/v1/bookings", Tags: []string{"Bookings"},
		Summary: "Take a booking",
		Description: "Needs the scope bookings:write and an Idempotency-Key; see the rules above. Holds the slot and begins the payment. " +
			"201 tells that the slot is held, not that it is paid: look at the booking until its status is confirmed, expired, cancelled or failed.",
		DefaultStatus: http.StatusCreated,
		Responses:     map[string]*huma.Response{"201": withBooking("The slot is held.")},
	}, gate, CodeSlotUnavailable, CodePriceChanged, CodeAmountTooSmall, CodeAmountTooLarge, CodeAmountTooFine, CodeCurrencyNotCharged, CodeResourceNotFound)
}

func describeListBookings(gate huma.Middlewares) huma.Operation {
	op := scoped(huma.Operation{
		OperationID: "list-bookings", Method: http.MethodGet, Path: "/v1/bookings", Tags: []string{"Bookings"},
		Summary: "List your bookings",
		Description: "Needs the scope bookings:read. Your own bookings, the newest first, in pages: as long as an answer has next, send it as after, with the same filters, to have more. " +
			"No page skips or repeats a booking because others are made meanwhile; what a page says is right when it is read.",
	}, CodeValidationFailed)
	op.Middlewares = gate
	return op
}

func describeGetBooking(gate huma.Middlewares) huma.Operation {
	op := scoped(huma.Operation{
		OperationID: "get-booking", Method: http.MethodGet, Path: "/v1/bookings/{id}", Tags: []string{"Bookings"},
		Summary: "Look at a booking",
		Description: "Needs the scope bookings:read. Another client's booking is answered like one that does not exist. " +
			"While payment.status is requires_action, next_action says what your customer has to do, read from the payment provider at that moment: " +
			"pass it on to the customer's browser and look at the booking until its status changes. Nowhere else is it shown. " +
			"If the provider does not answer within three seconds the booking comes without it, with next_action_hint and Retry-After.\n\n" +
			"With Prefer: wait=N the answer comes as soon as the booking is final (confirmed, expired, cancelled, failed) or its customer has to act " +
			"(payment.status is requires_action or declined), and after N seconds at the latest, with the booking as it then stands; often enough that is in place of polling.",
		Parameters: []*huma.Param{{
			Name: "Prefer", In: "header", Example: "wait=6",
			Description: "wait=N: for how many seconds the answer may be kept back (RFC 7240). Preference-Applied tells how many it was cut down to. What cannot be read is ignored.",
			Schema:      &huma.Schema{Type: huma.TypeString},
		}},
	}, CodeNotFound, CodeValidationFailed)
	op.Middlewares = gate
	return op
}

// decides is an operation that is carried out once for its key, and may be refused as every such one may.
func decides(op huma.Operation, gate huma.Middlewares, codes ...Code) huma.Operation {
	op.Parameters = append(op.Parameters, &huma.Param{
		Name: "Idempotency-Key", In: "header", Required: true, Example: "8e03978e-40d5-43dd-bc93-6894a57f9324",
		Description: "Names this intention: 1 to 255 visible ASCII characters, bare or as a quoted string. The same key is never carried out twice.",
		Schema:      &huma.Schema{Type: huma.TypeString},
	})
	op.SkipValidateBody = true // parseJSON and what follows it do
	op = scoped(op, append(codes, CodeMalformedJSON, CodeKeyMissing, CodeKeyMalformed, CodeRequestTimeout, CodeRequestInProgress, CodeKeyExpired,
		CodeBodyTooLarge, CodeUnsupportedMediaType, CodeValidationFailed, CodeKeyReused)...)
	op.Middlewares = gate
	return op
}

// withBooking is an answer that shows a booking.
func withBooking(says string) *huma.Response {
	return &huma.Response{Description: says, Content: map[string]*huma.MediaType{"application/json": {Schema: reference("Booking")}}}
}

func describeChangePayment(gate huma.Middlewares) huma.Operation {
	return decides(huma.Operation{
		OperationID: "change-payment", Method: http.MethodPost, Path: "/v1/bookings/{id}/payment", Tags: []string{"Bookings"},
		Summary: "Pay with another card",
		Description: "Needs the scope bookings:write and an Idempotency-Key. For a booking that is held and whose payment is declined. " +
			"202 tells that the other card will be charged, at most once and only if nothing was charged before: look at the booking for what came of it. " +
			"A few cards are taken for a booking, and for all of a client's bookings together.",
		DefaultStatus: http.StatusAccepted,
		Responses:     map[string]*huma.Response{"202": withBooking("The other card was taken, and waits for its charge.")},
	}, gate, CodePaymentNotDeclined, CodeTooManyCards, CodeNotFound)
}

func describeCancelBooking(gate huma.Middlewares) huma.Operation {
	return decides(huma.Operation{
		OperationID: "cancel-booking", Method: http.MethodPost, Path: "/v1/bookings/{id}/cancel", Tags: []string{"Bookings"},
		Summary: "Cancel a booking",
		Description: "Needs the scope bookings:write and an Idempotency-Key; the body is {}, or tells the refund that you expect.\n\n" +
			"A confirmed booking is over at once: its slot is free, and what its refund policy gives back at this moment goes back by itself; " +
			"cancellation.refund tells how much. After its end a confirmed booking cannot be cancelled any more: 409 booking_over. " +
			"Of a booking that is held or ending the payment is stopped, and the slot becomes free once the provider has proved what became of the money. " +
			"If it was taken at the last moment, the booking is cancelled all the same, and refunded by its policy as of the moment at which you asked. " +
			"A booking that is over stays as it is.",
		DefaultStatus: http.StatusOK,
		Responses: map[string]*huma.Response{
			"200": withBooking("The booking is over."),
			"202": withBooking("The booking is ending: look at it for what came of it."),
		},
	}, gate, CodeBookingOver, CodeRefundChanged, CodeNotFound)
}

func describePreviewCancellation(gate huma.Middlewares) huma.Operation {
	op := scoped(huma.Operation{
		OperationID: "preview-cancellation", Method: http.MethodGet, Path: "/v1/bookings/{id}/cancellation", Tags: []string{"Bookings"},
		Summary: "See what cancelling would do",
		Description: "Needs the scope bookings:read. What cancelling the booking at this moment would do, until when that holds, and what follows. It changes and promises nothing: " +
			"to be sure that the customer gets what you have shown, send refund as expected_refund when you cancel.",
	}, CodeNotFound, CodeValidationFailed)
	op.Middlewares = gate
	return op
}

func describeStreamBooking(gate huma.Middlewares) huma.Operation {
	op := scoped(huma.Operation{
		OperationID: "stream-booking", Method: http.MethodGet, Path: "/v1/bookings/{id}/stream", Tags: []string{"Bookings"},
		Summary: "Follow a booking",
		Description: "Needs the scope bookings:read. Server-sent events (text/event-stream) until the booking is final. " +
			"Each has the event's number as id, what happened as event, and as data, on one line, the booking as GET shows it at the moment of sending: " +
			"an event that is sent late comes with a booking that has moved on. What is sent at first is everything after Last-Event-ID that has happened already; after that, events as they happen.\n\n" +
			"- `held`: the slot is held; every booking begins with it.\n" +
			"- `action_required`: the customer's bank wants the customer to authenticate.\n" +
			"- `payment_declined`: the card was declined; data.payment says why.\n" +
			"- `confirmed`, `expired`, `cancelled`, `failed`: the booking is final, and the stream ends.\n\n" +
			"A stream also ends after a few minutes, and when a server is about to stop. Come back then with the id of the last event that you have as Last-Event-ID: each event is sent once and in order. " +
			"If the booking is final and you have everything, the answer is 204, and there is nothing to come back for. New kinds of events may be added: pass over what you do not know. " +
			"Lines that begin with a colon are signs of life, one every 15 seconds by default; retry tells after how many milliseconds to come back.",
		Responses: map[string]*huma.Response{
			"200": {
				Description: "Events.",
				Headers: map[string]*huma.Header{"X-Accel-Buffering": {
					Description: "no: what stands between is asked to pass events on at once.", Schema: &huma.Schema{Type: huma.TypeString},
				}},
				Content: map[string]*huma.MediaType{eventStreamContentType: {Schema: &huma.Schema{Type: huma.TypeString}}},
			},
			"204": {Description: "The booking is final, and there is no event after Last-Event-ID."},
		},
	}, CodeNotFound, CodeValidationFailed, CodeTooManyStreams)
	op.Middlewares = gate
	return op
}

func describeRequestRefund(gate huma.Middlewares) huma.Operation {
	return decides(huma.Operation{
		OperationID: "request-refund", Method: http.MethodPost, Path: "/v1/ops/bookings/{id}/refunds", Tags: []string{"Refunds"},
		Summary: "Give money back",
		Description: "Needs the scope operator:refund or finance, and an Idempotency-Key. For a booking of any client that was paid. The refund is made once, however often it is asked for under its key; " +
			"two keys are two refunds, even of equal amounts. 201 tells that it will be made: list the refunds for what came of it, and follow the events refunded and refund_failed. " +
			"All refunds together never give back more than was taken: those that are on their way count, those that failed do not.",
		DefaultStatus: http.StatusCreated,
		Responses: map[string]*huma.Response{
			"201": {Description: "The refund will be made.", Content: map[string]*huma.MediaType{"application/json": {Schema: reference("Refund")}}},
			"202": {
				Description: "Nothing is done yet: more would go back than one person may give, and a second one has to approve it. See request.",
				Content:     map[string]*huma.MediaType{"application/json": {Schema: reference("ActResult")}},
			},
		},
	}, gate, CodeActRefused, CodeBookingNotPaid, CodeRefundExceeds, CodeChargeDisputed, CodeAmountTooFine, CodeNotFound)
}

func describeListRefunds(gate huma.Middlewares) huma.Operation {
	op := scoped(huma.Operation{
		OperationID: "list-refunds", Method: http.MethodGet, Path: "/v1/ops/bookings/{id}/refunds", Tags: []string{"Refunds"},
		Summary: "List the refunds of a booking",
		Description: "Needs the scope operator:read or finance. All refunds of a booking of any client, the oldest first, those included that somebody has made at the payment provider's dashboard, " +
			"and what is left to be given back.",
	}, CodeNotFound, CodeValidationFailed)
	op.Middlewares = gate
	return op
}

func describeListResources(gate huma.Middlewares) huma.Operation {
	op := scoped(huma.Operation{
		OperationID: "list-resources", Method: http.MethodGet, Path: "/v1/resources", Tags: []string{"Resources"},
		Summary: "List what can be booked", Description: "Needs the scope bookings:read. The oldest first, in pages of up to 1000: as long as an answer has next, send it as after to have more.",
	}, CodeValidationFailed)
	op.Middlewares = gate
	return op
}

func describeGetResource(gate huma.Middlewares) huma.Operation {
	op := scoped(huma.Operation{
		OperationID: "get-resource", Method: http.MethodGet, Path: "/v1/resources/{id}", Tags: []string{"Resources"},
		Summary: "Look at a resource", Description: "Needs the scope bookings:read.",
	}, CodeNotFound, CodeValidationFailed)
	op.Middlewares = gate
	return op
}

func describeWebhook(gate huma.Middlewares) huma.Operation {
	op := refusing(huma.Operation{
		OperationID: "receive-stripe-webhook", Method: http.MethodPost, Path: "/v1/webhooks/stripe", Tags: []string{"Webhooks"},
		Summary: "Take in an event of the payment provider",
		Description: "For the provider alone: the signature over the raw body authenticates it, and no token is needed. Every secret is tried on every v1 signature, " +
			"and the time may be 300 seconds from now either way. Events of any API version are taken. 200 tells that the event is stored, or was before; " +
			"what it says is never applied: its object is read from the provider.",
		DefaultStatus:      http.StatusOK,
		SkipValidateBody:   true,
		SkipValidateParams: true, // an endpoint's URL may carry a query
		Security:           []map[string][]string{{"signature": {}}},
	}, CodeSignatureInvalid, CodeSignatureExpired, CodeEventUnreadable, CodeRequestTimeout, CodeBodyTooLarge, CodeBusy, CodeWebhooksNotSetUp)
	op.Middlewares = gate
	return op
}

func describeHealth() huma.Operation {
	return refusing(huma.Operation{
		OperationID: "health", Method: http.MethodGet, Path: "/healthz", Tags: []string{"Health"},
		Summary: "Is the process alive?", Description: "Asks nothing of the database: one that is down is no reason to restart.",
		SkipValidateParams: true, // probes may add a query
	})
}

func describeReady() huma.Operation {
	return refusing(huma.Operation{
		OperationID: "ready", Method: http.MethodGet, Path: "/readyz", Tags: []string{"Health"},
		Summary: "Should traffic be sent here?", Description: "Not while the process is about to stop, nor without a database that has this build's schema.",
		SkipValidateParams: true,
	}, CodeNotReady)
}

// scoped is an operation behind a token.
func scoped(op huma.Operation, codes ...Code) huma.Operation {
	op.Security = []map[string][]string{{"token": {}}}
	return refusing(op, append(codes, CodeUnauthenticated, CodeForbidden, CodeBusy)...)
}

// refusing lists an operation's refusals: a response for each status, with the codes that it can have.
func refusing(op huma.Operation, codes ...Code) huma.Operation {
	if op.Responses == nil {
		op.Responses = map[string]*huma.Response{}
	}
	for _, code := range append(codes, CodeMethodNotAllowed, CodeInternal) {
		status := strconv.Itoa(kinds[code].status)
		line := "`" + string(code) + "`: " + kinds[code].title + "."
		if r := op.Responses[status]; r != nil {
			r.Description += "\n" + line
			continue
		}
		op.Responses[status] = &huma.Response{
			Description: line,
			Content:     map[string]*huma.MediaType{problemContentType: {Schema: reference("Problem")}},
			Headers:     refusalHeaders(code),
		}
	}
	return op
}

func refusalHeaders(code Code) map[string]*huma.Header {
	text := func(says string) *huma.Header {
		return &huma.Header{Description: says, Schema: &huma.Schema{Type: huma.TypeString}}
	}
	switch kinds[code].status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return map[string]*huma.Header{"WWW-Authenticate": text("What is asked for.")}
	case http.StatusMethodNotAllowed:
		return map[string]*huma.Header{"Allow": text("The methods that are allowed here.")}
	case http.StatusTooManyRequests:
		return map[string]*huma.Header{"Retry-After": text("After how many seconds to send the same request again; absent from too_many_cards: never for this booking.")}
	case http.StatusServiceUnavailable:
		return map[string]*huma.Header{"Retry-After": text("After how many seconds to send the same request again.")}
	case http.StatusConflict:
		return map[string]*huma.Header{
			"Retry-After":             text("With request_in_progress: after how many seconds to send the same request again."),
			"Location":                text("With idempotency_key_expired: the booking, if the key made one."),
			"Idempotency-Replayed":    text("true if this is the stored answer of an earlier request."),
			"Idempotency-Key-Expires": text("With slot_unavailable and price_changed: until when this answer is kept and replayed, RFC 3339."),
		}
	default:
		return nil
	}
}

func reference(schema string) *huma.Schema {
	return &huma.Schema{Ref: "#/components/schemas/" + schema}
}

// finish completes what huma has gathered from the types, and returns the document.
func finish(document *huma.OpenAPI) ([]byte, error) {
	schemas := document.Components.Schemas
	schemas.Schema(reflect.TypeFor[Problem](), true, "Problem")
	schemas.Schema(reflect.TypeFor[Refund](), true, "Refund")
	schemas.Schema(reflect.TypeFor[operator.Result](), true, "ActResult")
	schemas.Schema(reflect.TypeFor[Booking](), true, "Booking") // which the answer to a POST refers to by name
	codes := make([]any, 0, len(kinds))
	for _, code := range Codes() {
		codes = append(codes, string(code))
	}
	schemas.Map()["Problem"].Properties["code"].Enum = codes
	for _, name := range []string{"Booking", "BookingDetail"} {
		explain(schemas.Map()[name].Properties["status"], bookingStatuses())
		explain(schemas.Map()[name].Properties["ending_reason"], endingReasons())
	}
	finishOperators(schemas)
	finishFinance(document)
	explain(schemas.Map()["CancellationPreview"].Properties["outcome"], cancelOutcomes())
	explain(schemas.Map()["NextAction"].Properties["type"], actionTypes())
	explain(schemas.Map()["Payment"].Properties["status"], paymentStatuses())
	explainOpen(schemas.Map()["Dispute"].Properties["status"], disputeStatuses())
	explain(schemas.Map()["Refund"].Properties["status"], refundStatuses())
	explain(schemas.Map()["Refund"].Properties["cause"], refundCauses())
	// Answers may get new members; requests may not have any that are not listed.
	for _, name := range []string{"Booking", "BookingDetail", "NextAction", "Payment", "Dispute", "Money", "Cancellation", "CancellationPreview", "CancellationTerm", "RefundStep", "Refund", "Resource", "Problem", "Fault", "ListRefundsOutputBody", "ListResourcesOutputBody", "ListBookingsOutputBody", "StatusOutputBody"} {
		schemas.Map()[name].AdditionalProperties = nil
	}
	// huma registers its own error model with every operation; this API never answers with it.
	delete(schemas.Map(), "ErrorModel")
	delete(schemas.Map(), "ErrorDetail")

	for _, of := range []struct {
		op   *huma.Operation
		name string
		body reflect.Type
		says string
	}{
		{document.Paths["/v1/bookings"].Post, "BookingRequest", reflect.TypeFor[bookingRequest](), "The booking. At most 64 KiB; members that are not listed, or given twice, are refused."},
		{document.Paths["/v1/bookings/{id}/payment"].Post, "PaymentRequest", reflect.TypeFor[paymentRequest](), "The other card."},
		{document.Paths["/v1/bookings/{id}/cancel"].Post, "CancelRequest", reflect.TypeFor[cancelRequest](), "Nothing has to be said: {}. With expected_refund nothing else than that is given back."},
		{document.Paths["/v1/ops/bookings/{id}/refunds"].Post, "RefundRequest", reflect.TypeFor[refundRequest](), "How much, and why."},
		{document.Paths["/v1/ops/effects/{id}/replay"].Post, "ActRequest", reflect.TypeFor[actRequest](), "Why."},
		{document.Paths["/v1/ops/effects/{id}/republish"].Post, "ActRequest", reflect.TypeFor[actRequest](), "Why."},
		{document.Paths["/v1/ops/effects/{id}/resolve"].Post, "ActRequest", reflect.TypeFor[actRequest](), "Why."},
		{document.Paths["/v1/ops/effects/{id}/discard"].Post, "ActRequest", reflect.TypeFor[actRequest](), "Why."},
		{document.Paths["/v1/ops/requests/{id}"].Put, "DecideRequest", reflect.TypeFor[decideRequest](), "The decision, and why."},
		{document.Paths["/v1/ops/runs/preview"].Post, "RunRequest", reflect.TypeFor[runRequest](), "The run as it would be started."},
		{document.Paths["/v1/ops/runs/{id}"].Put, "RunRequest", reflect.TypeFor[runRequest](), "Which act, on which effects, and why."},
		{document.Paths["/v1/ops/runs/{id}/continue"].Post, "ContinueRequest", reflect.TypeFor[continueRequest](), "Nothing has to be said: {}."},
		{document.Paths["/v1/ops/runs/{id}/end"].Post, "EndRequest", reflect.TypeFor[endRequest](), "Why."},
		{document.Paths["/v1/ops/pauses/{kind}"].Put, "PauseRequest", reflect.TypeFor[pauseRequest](), "Stop or go on, and why."},
	} {
		of.op.RequestBody.Description = of.says
		of.op.RequestBody.Content["application/json"].Schema = schemas.Schema(of.body, true, of.name)
	}
	schemas.Map()["BookingRequest"].Properties["metadata"].AdditionalProperties = &huma.Schema{
		Type: huma.TypeString, MaxLength: pointer(maxMetadataValue),
	}
	answers := document.Paths["/v1/bookings/{id}/cancel"].Post.Responses
	answers["202"].Headers = answers["200"].Headers // huma gives them to the default alone
	answers = document.Paths["/v1/ops/bookings/{id}/refunds"].Post.Responses
	answers["202"].Headers = answers["201"].Headers
	for _, act := range []string{"replay", "republish", "resolve", "discard"} {
		answers := document.Paths["/v1/ops/effects/{id}/"+act].Post.Responses
		answers["202"].Headers = answers["200"].Headers
	}

	finishExamples(document)
	text, err := json.Marshal(document)
	if err != nil {
		return nil, fmt.Errorf("write the OpenAPI document: %w", err)
	}
	if strings.Contains(string(text), "ErrorModel") {
		return nil, fmt.Errorf("the OpenAPI document still refers to huma's error model")
	}
	return text, nil
}

func pointer[T any](v T) *T { return &v }
