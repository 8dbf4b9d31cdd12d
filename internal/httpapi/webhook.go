package httpapi

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"

	"holdfast/payments"
)

// Inbox takes in what the payment provider delivers.
type Inbox interface {
	// Receive verifies a delivery and stores its receipt. Its error is one of package payments' if it is not the provider's.
	Receive(ctx context.Context, signature string, body []byte) (eventID string, err error)
}

const (
	routeWebhook = "POST /v1/webhooks/stripe"
	// maxDelivery is the longest delivery that is read, in bytes: the provider's are a few KiB.
	maxDelivery = 512 << 10
)

type webhookInput struct {
	RawBody []byte `contentType:"application/json"`
}

// receiveWebhook stores the receipt of a delivery and answers: that is all that a delivery leads to at once. The signature
// says who calls, so that no token is asked for, and nothing of the body is ever logged but the event's id.
func (s *Server) receiveWebhook(ctx context.Context, x *exchange, in *webhookInput) (*statusOutput, error) {
	event, err := s.config.Inbox.Receive(ctx, x.signature, in.RawBody)
	x.event = event
	switch {
	case errors.Is(err, payments.ErrSignature):
		return nil, newProblem(CodeSignatureInvalid, "No v1 signature in Stripe-Signature fits this body under any secret of this endpoint.")
	case errors.Is(err, payments.ErrSignatureAge):
		return nil, newProblem(CodeSignatureExpired, "The signature's time is more than 300 seconds from now. If this is the provider's, one of the clocks is wrong.")
	case errors.Is(err, payments.ErrEventUnreadable):
		return nil, newProblem(CodeEventUnreadable, "The body is signed, and holds no event: a JSON object with id and type.")
	case err != nil:
		return nil, err
	}
	return ok(), nil
}

// withDelivery reads the body as it comes, byte for byte, whatever it says that it is: the signature is over the bytes.
func (s *Server) withDelivery(w http.ResponseWriter, r *http.Request, x *exchange) error {
	if s.config.Inbox == nil { // not 404: the provider tries again for days, so that nothing is lost once it is set up
		return newProblem(CodeWebhooksNotSetUp, "STRIPE_WEBHOOK_SECRETS is not set, so nobody's signature can be checked.").
			with("Retry-After", retryAfterWebhook)
	}
	x.signature = strings.Join(r.Header.Values("Stripe-Signature"), ",")
	r.Header.Del("Content-Type")
	body, err := readBody(w, r, maxDelivery)
	if errors.Is(err, errBodyCut) {
		return newProblem(CodeSignatureInvalid, "The body ended before its announced length.")
	}
	if err != nil {
		return err
	}
	if len(body) == 0 { // signed or not, there is no event in it
		return newProblem(CodeEventUnreadable, "The body is empty.")
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return nil
}

const retryAfterWebhook = "60"
