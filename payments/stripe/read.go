package stripe

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	sdk "github.com/stripe/stripe-go/v76"
	"github.com/stripe/stripe-go/v76/form"

	"holdfast/domain"
	"holdfast/payments"
)

// ReadError says that a read has shown nothing, or not everything. It holds no text of Stripe's.
type ReadError struct {
	Act        string // what was being read
	HTTPStatus int    // 0: no answer
	Code       string // Stripe's error code
	RequestID  string
	Reason     string // in our words
	cause      error  // payments.ErrNoIntent, or the caller's own context error
}

func (e *ReadError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s", e.Act, e.Reason)
	for _, word := range []string{e.Code, e.RequestID} {
		if word != "" {
			b.WriteString(" " + word)
		}
	}
	return b.String()
}

// Unwrap returns payments.ErrNoIntent, context.Canceled, context.DeadlineExceeded or nil.
func (e *ReadError) Unwrap() error { return e.cause }

// Intent reads one intent. The error is payments.ErrNoIntent if Stripe says that the account has no such intent.
func (g *Gateway) Intent(ctx context.Context, id string) (payments.Intent, error) {
	act := "read payment intent"
	if !idFits(id) {
		return payments.Intent{}, &ReadError{Act: act, Reason: "the id is missing or malformed"}
	}
	p := &sdk.PaymentIntent{}
	if err := g.get(ctx, act, intentsPath+"/"+id, nil, p); err != nil {
		if err.HTTPStatus == http.StatusNotFound && err.Code == string(sdk.ErrorCodeResourceMissing) {
			err.cause = payments.ErrNoIntent
		}
		return payments.Intent{}, err
	}
	intent, err := translate(p)
	if err == nil && intent.ID != id {
		err = errors.New("the answer holds another intent")
	}
	if err != nil {
		return payments.Intent{}, &ReadError{Act: act, HTTPStatus: http.StatusOK, Reason: err.Error()}
	}
	return intent, nil
}

// Charges lists all charges of an intent, newest first.
func (g *Gateway) Charges(ctx context.Context, intentID string) ([]payments.ProviderCharge, error) {
	act := "list charges"
	if !idFits(intentID) {
		return nil, &ReadError{Act: act, Reason: "the intent's id is missing or malformed"}
	}
	filter := payments.Params{"payment_intent": intentID}
	return walk(ctx, g, act, "/v1/charges", filter, func(c *sdk.Charge) (string, payments.ProviderCharge, error) {
		charge, err := translateCharge(c, intentID)
		return charge.ID, charge, err
	})
}

// Refunds lists all refunds of an intent, newest first.
func (g *Gateway) Refunds(ctx context.Context, intentID string) ([]payments.ProviderRefund, error) {
	act := "list refunds"
	if !idFits(intentID) {
		return nil, &ReadError{Act: act, Reason: "the intent's id is missing or malformed"}
	}
	filter := payments.Params{"payment_intent": intentID}
	return walk(ctx, g, act, refundsPath, filter, func(r *sdk.Refund) (string, payments.ProviderRefund, error) {
		refund, err := translateRefund(r, intentID)
		return refund.ID, refund, err
	})
}

// Disputes lists all disputes of an intent, newest first.
func (g *Gateway) Disputes(ctx context.Context, intentID string) ([]payments.ProviderDispute, error) {
	act := "list disputes"
	if !idFits(intentID) {
		return nil, &ReadError{Act: act, Reason: "the intent's id is missing or malformed"}
	}
	filter := payments.Params{"payment_intent": intentID}
	return walk(ctx, g, act, "/v1/disputes", filter, func(d *sdk.Dispute) (string, payments.ProviderDispute, error) {
		dispute, err := translateDispute(d, intentID)
		return dispute.ID, dispute, err
	})
}

// IntentsCreated lists the intents created in [from, to], newest first.
func (g *Gateway) IntentsCreated(ctx context.Context, from, to time.Time) ([]payments.Intent, error) {
	filter := payments.Params{
		"created[gte]": fmt.Sprint(from.Unix()),
		"created[lte]": fmt.Sprint(to.Unix()),
	}
	return walk(ctx, g, "list payment intents", intentsPath, filter, func(p *sdk.PaymentIntent) (string, payments.Intent, error) {
		intent, err := translate(p)
		if err != nil && p != nil && p.ID != "" && !mayBeOurs(p.Metadata) {
			// In a currency that is none of ours, say. It is in the way of nobody's search.
			intent, err = payments.Intent{ID: p.ID}, nil
		}
		if err == nil && (p.Created < from.Unix() || p.Created > to.Unix()) {
			err = errors.New("the listing holds an intent from outside its window")
		}
		return intent.ID, intent, err
	})
}

// mayBeOurs tells whether an object's metadata is as we write it. Other applications may use the same names, but hardly for
// such ids.
func mayBeOurs(metadata map[string]string) bool {
	_, err := domain.ParseID[domain.PaymentID](metadata[metadataPayment])
	return err == nil
}

// get makes one read. The SDK retries it twice, and between tries is deaf to ctx for up to a second.
func (g *Gateway) get(ctx context.Context, act, path string, query *form.Values, into sdk.LastResponseSetter) *ReadError {
	return g.getBy(ctx, g.reads, act, path, query, into)
}

func (g *Gateway) getBy(
	ctx context.Context, by sdk.Backend, act, path string, query *form.Values, into sdk.LastResponseSetter,
) *ReadError {
	w := &witness{}
	err := by.CallRaw(http.MethodGet, path, g.key(), query, &sdk.Params{Context: w.watch(ctx)}, into)
	if err == nil && w.status == http.StatusOK {
		return nil
	}
	failed := &ReadError{Act: act, HTTPStatus: w.status, RequestID: w.requestID(), cause: ctx.Err()}
	failed.Reason = silence(err)
	if w.status != 0 {
		failed.Reason = fmt.Sprintf("answered %d", w.status)
	}
	var refusal *sdk.Error
	if errors.As(err, &refusal) {
		failed.Code = token(string(refusal.Code))
	}
	return failed
}
