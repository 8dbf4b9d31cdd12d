package stripe

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"

	sdk "github.com/stripe/stripe-go/v76"

	"holdfast/domain"
	"holdfast/payments"
)

// Action reads what the customer of an intent has to do. It is one try: the SDK's waits between tries would outlast
// whoever asks.
func (g *Gateway) Action(ctx context.Context, intentID string) (payments.NextAction, error) {
	act := "read the next action of a payment intent"
	if !idFits(intentID) {
		return payments.NextAction{}, &ReadError{Act: act, Reason: "the id is missing or malformed"}
	}
	p := &sdk.PaymentIntent{}
	if err := g.getBy(ctx, g.writes, act, intentsPath+"/"+intentID, nil, p); err != nil {
		return payments.NextAction{}, err
	}
	if p.Object != "payment_intent" || p.ID != intentID || token(string(p.Status)) == "" {
		return payments.NextAction{}, &ReadError{Act: act, HTTPStatus: http.StatusOK, Reason: errNoIntentInAnswer.Error()}
	}
	if p.Status != sdk.PaymentIntentStatusRequiresAction {
		return payments.NextAction{}, payments.ErrNoAction
	}
	next, err := nextAction(p)
	if err != nil {
		return payments.NextAction{}, &ReadError{Act: act, HTTPStatus: http.StatusOK, Reason: err.Error()}
	}
	return next, nil
}

// nextAction is a page to open only where Stripe names one. Everything else, types that are not known here too, is for
// Stripe's own library, which needs the client secret alone.
func nextAction(p *sdk.PaymentIntent) (payments.NextAction, error) {
	if p.NextAction == nil || !strings.HasPrefix(p.ClientSecret, p.ID+"_secret_") {
		return payments.NextAction{}, errors.New("the answer holds no next action, or no client secret of the intent")
	}
	next := payments.NextAction{Type: payments.ActionSDK, ClientSecret: domain.Secret(p.ClientSecret)}
	if to := p.NextAction.RedirectToURL; p.NextAction.Type == sdk.PaymentIntentNextActionTypeRedirectToURL && to != nil && opens(to.URL) {
		next.Type, next.URL = payments.ActionRedirect, domain.Secret(to.URL)
	}
	return next, nil
}

// opens tells whether a browser may be sent there: never to a script, never in the clear.
func opens(address string) bool {
	u, err := url.Parse(address)
	return err == nil && u.Scheme == "https" && u.Host != ""
}
