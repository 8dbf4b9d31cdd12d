package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"holdfast/domain"
	"holdfast/internal/bookings"
	"holdfast/internal/clients"
	"holdfast/internal/finance"
	"holdfast/internal/operator"
	"holdfast/outbox"
	"holdfast/payments"
)

// Code names a problem for programs. It never changes its meaning.
type Code string

// Every code that the API answers with.
const (
	CodeMalformedJSON        Code = "malformed_json"
	CodeKeyMissing           Code = "idempotency_key_missing"
	CodeKeyMalformed         Code = "idempotency_key_malformed"
	CodeSignatureInvalid     Code = "signature_invalid"
	CodeSignatureExpired     Code = "signature_expired"
	CodeEventUnreadable      Code = "event_unreadable"
	CodeUnauthenticated      Code = "unauthenticated"
	CodeForbidden            Code = "forbidden"
	CodeNotFound             Code = "not_found"
	CodeResourceNotFound     Code = "resource_not_found"
	CodeMethodNotAllowed     Code = "method_not_allowed"
	CodeRequestTimeout       Code = "request_timeout"
	CodeSlotUnavailable      Code = "slot_unavailable"
	CodePriceChanged         Code = "price_changed"
	CodePaymentNotDeclined   Code = "payment_not_declined"
	CodeBookingOver          Code = "booking_over"
	CodeRefundChanged        Code = "refund_changed"
	CodeBookingNotPaid       Code = payments.RefundNotPaid
	CodeRefundExceeds        Code = payments.RefundExceeds
	CodeChargeDisputed       Code = payments.RefundDisputed
	CodeRequestInProgress    Code = "request_in_progress"
	CodeKeyExpired           Code = "idempotency_key_expired"
	CodeBodyTooLarge         Code = "body_too_large"
	CodeUnsupportedMediaType Code = "unsupported_media_type"
	CodeValidationFailed     Code = "validation_failed"
	CodeKeyReused            Code = "idempotency_key_reused"
	CodeAmountTooSmall       Code = "amount_too_small"
	CodeAmountTooLarge       Code = "amount_too_large"
	CodeAmountTooFine        Code = "amount_too_fine"
	CodeCurrencyNotCharged   Code = "currency_not_chargeable"
	CodeTooManyCards         Code = "too_many_cards"
	CodeTooManyStreams       Code = "too_many_streams"
	CodeActRefused           Code = "act_refused"
	CodeEffectFinished       Code = Code(outbox.RefusedFinished)
	CodeEffectChanged        Code = Code(outbox.RefusedChanged)
	CodeNotApplicable        Code = Code(outbox.RefusedInapplicable)
	CodeNoMoneyProof         Code = Code(outbox.RefusedUnproved)
	CodeNothingToAdopt       Code = Code(outbox.RefusedNothingSeen)
	CodeNotConfigured        Code = Code(outbox.RefusedUnavailable)
	CodeSamePerson           Code = Code(outbox.RefusedSamePerson)
	CodeSecondPerson         Code = Code(outbox.RefusedSecondPerson)
	CodeRequestDecided       Code = Code(outbox.RefusedDecided)
	CodeRequestExpired       Code = Code(outbox.RefusedExpired)
	CodeRunDiffers           Code = Code(outbox.RefusedOtherRun)
	CodeRefundRefused        Code = Code(outbox.RefusedRefund)
	CodeBooksIncomplete      Code = "books_incomplete"
	CodeProviderUnread       Code = "provider_unread"
	CodeBrokerAway           Code = "broker_unreachable"
	CodeInternal             Code = "internal"
	CodeBusy                 Code = "busy"
	CodeNotReady             Code = "not_ready"
	CodeWebhooksNotSetUp     Code = "webhooks_not_configured"
)

// kind is what all problems of one code have in common.
type kind struct {
	status int
	title  string
}

// kinds is the one list of codes: the OpenAPI document is made from it, too. The two refusals that the accepting
// transaction stores are written by the database, under these names and titles.
var kinds = map[Code]kind{ //nolint:gochecknoglobals // a constant table
	CodeMalformedJSON:        {http.StatusBadRequest, "The body is not well-formed JSON"},
	CodeKeyMissing:           {http.StatusBadRequest, "The Idempotency-Key header is missing"},
	CodeKeyMalformed:         {http.StatusBadRequest, "The Idempotency-Key header is malformed"},
	CodeSignatureInvalid:     {http.StatusBadRequest, "The signature does not fit"},
	CodeSignatureExpired:     {http.StatusBadRequest, "The signature is too old, or from the future"},
	CodeEventUnreadable:      {http.StatusBadRequest, "The body holds no event"},
	CodeUnauthenticated:      {http.StatusUnauthorized, "No valid token was given"},
	CodeForbidden:            {http.StatusForbidden, "The token does not allow this"},
	CodeNotFound:             {http.StatusNotFound, "There is nothing here"},
	CodeResourceNotFound:     {http.StatusNotFound, "There is no such resource"},
	CodeMethodNotAllowed:     {http.StatusMethodNotAllowed, "The method is not allowed here"},
	CodeRequestTimeout:       {http.StatusRequestTimeout, "The request did not arrive in time"},
	CodeSlotUnavailable:      {http.StatusConflict, "The slot is taken"},
	CodePriceChanged:         {http.StatusConflict, "The price has changed"},
	CodeBookingOver:          {http.StatusConflict, "The time of the booking is over"},
	CodeRefundChanged:        {http.StatusConflict, "The refund has changed"},
	CodeBookingNotPaid:       {http.StatusConflict, "The booking is not paid"},
	CodeRefundExceeds:        {http.StatusConflict, "More than is left would go back"},
	CodeChargeDisputed:       {http.StatusConflict, "The charge is disputed"},
	CodePaymentNotDeclined:   {http.StatusConflict, "No other card is called for"},
	CodeRequestInProgress:    {http.StatusConflict, "A request with this key is in progress"},
	CodeKeyExpired:           {http.StatusConflict, "The stored answer for this key has expired"},
	CodeBodyTooLarge:         {http.StatusRequestEntityTooLarge, "The body is too large"},
	CodeUnsupportedMediaType: {http.StatusUnsupportedMediaType, "The body must be application/json"},
	CodeValidationFailed:     {http.StatusUnprocessableEntity, "The request is not valid"},
	CodeKeyReused:            {http.StatusUnprocessableEntity, "The key was used for another request"},
	CodeAmountTooSmall:       {http.StatusUnprocessableEntity, "The total is too small to be charged"},
	CodeAmountTooLarge:       {http.StatusUnprocessableEntity, "The total is too large to be charged"},
	CodeAmountTooFine:        {http.StatusUnprocessableEntity, "The total has a fraction that cannot be charged"},
	CodeCurrencyNotCharged:   {http.StatusUnprocessableEntity, "The currency cannot be charged"},
	CodeTooManyCards:         {http.StatusTooManyRequests, "Too many cards were tried"},
	CodeTooManyStreams:       {http.StatusTooManyRequests, "Too many streams are open"},
	CodeActRefused:           {http.StatusConflict, "The act is refused"},
	CodeEffectFinished:       {http.StatusConflict, "The effect is finished"},
	CodeEffectChanged:        {http.StatusConflict, "The effect has changed"},
	CodeNotApplicable:        {http.StatusConflict, "The act does not fit the effect"},
	CodeNoMoneyProof:         {http.StatusConflict, "The effect could still take money"},
	CodeNothingToAdopt:       {http.StatusConflict, "The provider shows nothing to adopt"},
	CodeNotConfigured:        {http.StatusConflict, "The act is not set up here"},
	CodeSamePerson:           {http.StatusConflict, "Somebody else has to approve it"},
	CodeSecondPerson:         {http.StatusConflict, "A second person is needed"},
	CodeRequestDecided:       {http.StatusConflict, "The request is decided"},
	CodeRequestExpired:       {http.StatusConflict, "The request has expired"},
	CodeRunDiffers:           {http.StatusConflict, "The run is another one"},
	CodeRefundRefused:        {http.StatusConflict, "The refund is refused"},
	CodeBooksIncomplete:      {http.StatusConflict, "The provider's books were not read whole"},
	CodeProviderUnread:       {http.StatusServiceUnavailable, "The payment provider could not be read"},
	CodeBrokerAway:           {http.StatusServiceUnavailable, "The broker does not answer"},
	CodeInternal:             {http.StatusInternalServerError, "Something went wrong on our side"},
	CodeBusy:                 {http.StatusServiceUnavailable, "The service is busy"},
	CodeNotReady:             {http.StatusServiceUnavailable, "The service is not ready"},
	CodeWebhooksNotSetUp:     {http.StatusServiceUnavailable, "Webhooks are not set up"},
}

// Codes lists every code.
func Codes() []Code { return slices.Sorted(maps.Keys(kinds)) }

const (
	problemType        = "urn:holdfast:problem:"
	problemContentType = "application/problem+json"
	retryAfterSeconds  = "1" // for what passes: a key in progress, a busy database
)

// Problem is an RFC 9457 problem document.
type Problem struct { //nolint:errname // the document's name first; the OpenAPI document takes it from here
	Type   string  `json:"type" format:"uri" doc:"A URN that ends in the code."`
	Title  string  `json:"title" doc:"What kind of problem this is, for people; the same for every problem of one code."`
	Status int     `json:"status" doc:"The HTTP status."`
	Code   Code    `json:"code" doc:"What kind of problem this is, for programs. It never changes its meaning."`
	Detail string  `json:"detail,omitempty" doc:"What is wrong with this request, for people."`
	Errors []Fault `json:"errors,omitempty" nullable:"false" doc:"What is wrong, place by place."`

	By string          `json:"by,omitempty" doc:"Of an operator's act: who was first."`
	At *domain.Instant `json:"at,omitempty" format:"date-time" doc:"And when."`

	headers http.Header
}

// Fault is one thing wrong with a request.
type Fault struct {
	Location string `json:"location" doc:"Where, such as body.customer.email."`
	Message  string `json:"message" doc:"What is wrong there, and what would be right."`
}

func newProblem(code Code, detail string, faults ...Fault) *Problem {
	k, ok := kinds[code]
	if !ok { // a refusal that a layer below knows and this table does not yet
		k = kinds[CodeValidationFailed]
	}
	return &Problem{
		Type: problemType + string(code), Title: k.title, Status: k.status, Code: code, Detail: detail, Errors: faults,
		headers: http.Header{},
	}
}

func (p *Problem) with(header, value string) *Problem {
	p.headers.Set(header, value)
	return p
}

func (p *Problem) Error() string { return string(p.Code) + ": " + p.Detail }

// GetStatus is the HTTP status, for huma.
func (p *Problem) GetStatus() int { return p.Status }

// GetHeaders are the headers that go with the problem, for huma.
func (p *Problem) GetHeaders() http.Header { return p.headers }

// ContentType is the document's media type, for huma.
func (p *Problem) ContentType(string) string { return problemContentType }

// problem is the one table from errors to problem documents. What it does not know is a bug of ours: 500, and no
// detail.
func (s *Server) problem(err error) *Problem {
	var (
		problem *Problem
		invalid *domain.ValidationError
		list    faults
		expired *bookings.KeyExpiredError
		refused *outbox.RefusedError

		comparing *finance.ComparingError
	)
	switch {
	case errors.As(err, &problem):
		return problem
	case errors.As(err, &list):
		return list.problem()
	case errors.As(err, &invalid):
		return faults{invalid}.problem()
	case errors.As(err, &refused):
		return refusedAct(refused)
	case errors.Is(err, finance.ErrIncomplete):
		return newProblem(CodeBooksIncomplete, "Not all of the provider's books of the period were read, so that nobody can tell what it lacks. Nothing was signed. Ask for its report: it reads what is missing, or says why it cannot.")
	case errors.Is(err, outbox.ErrCursor):
		return invalidQuery("after", "want the next of a page, with the same filters")
	case errors.Is(err, payments.ErrUnread):
		return newProblem(CodeProviderUnread, "The act needs to know what the payment provider shows, and it could not be read. Nothing was changed. Send the same request again.").
			with("Retry-After", retryAfterSeconds)
	case errors.Is(err, operator.ErrBroker):
		return newProblem(CodeBrokerAway, "The event could not be sent. Nothing was recorded. Send the same request again.").
			with("Retry-After", retryAfterSeconds)
	case errors.Is(err, clients.ErrUnauthenticated):
		return newProblem(CodeUnauthenticated, "Send a valid API token as Authorization: Bearer hf_…").
			with("WWW-Authenticate", `Bearer realm="holdfast"`)
	case errors.Is(err, domain.ErrKeyMissing):
		return newProblem(CodeKeyMissing, domain.ErrKeyMissing.Error())
	case errors.Is(err, domain.ErrKeyMalformed):
		return newProblem(CodeKeyMalformed, domain.ErrKeyMalformed.Error())
	case errors.Is(err, bookings.ErrKeyReused):
		return newProblem(CodeKeyReused, "This key was sent before with other parameters. A changed booking is a new intention and needs a new key.")
	case errors.As(err, &expired):
		p := newProblem(CodeKeyExpired, "This key was used before, and its answer is no longer kept. No second booking is made. "+
			"If Location is given, the booking is there; otherwise the request was refused.")
		if expired.Location != "" {
			p = p.with("Location", expired.Location)
		}
		return p
	case errors.Is(err, bookings.ErrInProgress):
		return newProblem(CodeRequestInProgress, "Another request with this key has not been decided yet. Send the same request again.").
			with("Retry-After", retryAfterSeconds)
	case errors.Is(err, domain.ErrNotFound):
		return newProblem(CodeNotFound, "It does not exist, or does not belong to you.")
	case errors.As(err, &comparing):
		return newProblem(CodeBusy, fmt.Sprintf("The books are being compared, and %.0f %% is done. It goes on by itself: send the same request again, until it is.",
			100*comparing.Progress.Done)).with("Retry-After", retryAfterSeconds)
	case errors.Is(err, domain.ErrBusy), errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled), s.config.Transient(err):
		return newProblem(CodeBusy, "The request could not be carried out in time. Send the same request again.").
			with("Retry-After", retryAfterSeconds)
	default:
		return newProblem(CodeInternal, "")
	}
}

// refuse answers with the problem that err means, wherever no huma handler does.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, err error) {
	p := s.problem(err)
	exchangeOf(r.Context()).note(p, err)
	header := w.Header()
	for name, values := range p.headers {
		header[name] = values
	}
	header.Set("Content-Type", problemContentType)
	w.WriteHeader(p.Status)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(p) // the client may be gone: there is nobody to tell
}

// faults is everything wrong with a request.
type faults []*domain.ValidationError

func (f faults) Error() string { return f.problem().Detail }

const maxFaults = 20 // as many as somebody would read

func (f faults) problem() *Problem {
	code := Code(f[0].Code)
	if code == "" {
		code = CodeValidationFailed
	}
	listed := make([]Fault, 0, min(len(f), maxFaults))
	for _, v := range f[:min(len(f), maxFaults)] {
		listed = append(listed, Fault{Location: location(v.Field), Message: v.Reason})
	}
	detail := listed[0].Location + ": " + listed[0].Message
	if len(f) > 1 {
		detail = fmt.Sprintf("%d things are wrong; the first is %s", len(f), detail)
	}
	return newProblem(code, detail, listed...)
}

func location(field string) string {
	if field == "" {
		return "body"
	}
	return "body." + shorten(field)
}
