package console

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"holdfast/domain"
	"holdfast/internal/clients"
)

// OIDC is an identity provider that vouches for operators.
type OIDC struct {
	Issuer       string
	ClientID     string
	ClientSecret domain.Secret
	RedirectURL  string // the public address of /console/oidc/callback
}

const (
	oidcCookie  = "holdfast_oidc"
	oidcTimeout = 5 * time.Second // for one exchange with the identity provider
	oidcMinutes = 10              // to sign in there
)

// federation signs in by way of the identity provider. It is found out about when somebody first needs it: that it is away is no
// reason not to serve.
type federation struct {
	config OIDC
	http   *http.Client

	mu       sync.Mutex
	provider *oidc.Provider
}

// newFederation returns nil where there is no identity provider.
func newFederation(config *OIDC) *federation {
	if config == nil {
		return nil
	}
	return &federation{config: *config, http: &http.Client{Timeout: oidcTimeout}}
}

// name is how the sign-in page calls it.
func (f *federation) name() string {
	if f == nil {
		return ""
	}
	if u, err := url.Parse(f.config.Issuer); err == nil && u.Hostname() != "" {
		return u.Hostname()
	}
	return "your identity provider"
}

// open finds out where the provider's doors are.
func (f *federation) open(ctx context.Context) (*oidc.Provider, *oauth2.Config, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.provider == nil {
		provider, err := oidc.NewProvider(f.client(context.WithoutCancel(ctx)), f.config.Issuer)
		if err != nil {
			return nil, nil, fmt.Errorf("discover the identity provider: %w", err)
		}
		f.provider = provider
	}
	return f.provider, &oauth2.Config{
		ClientID: f.config.ClientID, ClientSecret: f.config.ClientSecret.Reveal(), RedirectURL: f.config.RedirectURL,
		Endpoint: f.provider.Endpoint(), Scopes: []string{oidc.ScopeOpenID, "email"},
	}, nil
}

func (f *federation) client(ctx context.Context) context.Context {
	return oidc.ClientContext(ctx, f.http)
}

// errand is what the browser keeps while it is away.
type errand struct {
	State    string `json:"s"`
	Nonce    string `json:"n"`
	Verifier string `json:"v"`
	Then     string `json:"t"`
}

// startOIDC sends the browser to the identity provider.
func (c *Console) startOIDC(v *visit) error {
	_, oauth, err := c.oidc.open(v.r.Context())
	if err != nil {
		return c.unreachable(v, err)
	}
	e := errand{State: rand.Text(), Nonce: rand.Text(), Verifier: oauth2.GenerateVerifier(), Then: inside(v.query("then"))}
	if len(e.Then) > maxFlash {
		e.Then = Root + "/"
	}
	packed, err := json.Marshal(e)
	if err != nil {
		return err
	}
	v.setErrand(base64.RawURLEncoding.EncodeToString(packed), oidcMinutes*60)
	http.Redirect(v.w, v.r, oauth.AuthCodeURL(e.State, oidc.Nonce(e.Nonce), oauth2.S256ChallengeOption(e.Verifier)), http.StatusSeeOther)
	return nil
}

// finishOIDC lets in whom the identity provider vouches for, if a client of that name holds an operator's token.
func (c *Console) finishOIDC(v *visit) error {
	if !c.signIns.allow(v.r.RemoteAddr) {
		v.w.Header().Set("Retry-After", "60")
		return refusal(http.StatusTooManyRequests, "Too many attempts", "Too many attempts to sign in from here. Wait a minute.")
	}
	e, ok := v.errand()
	v.setErrand("", -1)
	if !ok || subtle.ConstantTimeCompare([]byte(e.State), []byte(v.query("state"))) != 1 {
		return notSignedIn("This sign-in was not begun in this browser, or too long ago. Begin it again.")
	}
	if v.query("error") != "" || v.query("code") == "" {
		return notSignedIn("The identity provider has not let you in. Begin again, or ask whoever runs it.")
	}
	email, err := c.oidc.email(v.r.Context(), e, v.query("code"))
	if err != nil {
		return c.unreachable(v, err)
	}
	if email == "" {
		return notSignedIn("The identity provider does not say that your e-mail address is verified. Ask whoever runs it.")
	}
	who, err := c.config.Sessions.Holder(v.r.Context(), email, c.letIn())
	switch {
	case errors.Is(err, clients.ErrUnauthenticated):
		return notSignedIn("You are known as " + email + ", but no client of this name holds a valid token of an operator. " +
			"Whoever runs Holdfast makes one: api token create --client " + email + " --scope operator")
	case err != nil:
		return err
	}
	session, err := c.config.Sessions.Begin(v.r.Context(), who.TokenID)
	if err != nil {
		return err
	}
	v.setCookie(sessionCookie, session.Reveal(), 0)
	// Not a redirect: it would still belong to the way from the other site, on which the browser does not show the cookie.
	v.render(http.StatusOK, "bounce", "Signed in", Root+"/sign-in?"+url.Values{"then": {inside(e.Then)}, "why": {"lost"}}.Encode())
	return nil
}

func notSignedIn(detail string) *trouble {
	return refusal(http.StatusForbidden, "Not signed in", detail, link{"/sign-in", "Sign in"})
}

// unreachable tells of an identity provider that does not answer as it should. What it said is logged by its kind alone.
func (c *Console) unreachable(v *visit, err error) error {
	c.logger.WarnContext(v.r.Context(), "the identity provider did not sign somebody in", "error", fmt.Sprintf("%T", errors.Unwrap(err)))
	return refusal(http.StatusBadGateway, "The identity provider does not answer as it should",
		"You are not signed in. Try again in a moment, or sign in with a token.", link{"/sign-in", "Sign in"})
}

// email is the verified address of whom the code stands for; empty: there is none.
func (f *federation) email(ctx context.Context, e errand, code string) (string, error) {
	provider, oauth, err := f.open(ctx)
	if err != nil {
		return "", err
	}
	ctx = f.client(ctx)
	token, err := oauth.Exchange(ctx, code, oauth2.VerifierOption(e.Verifier))
	if err != nil {
		return "", fmt.Errorf("exchange the code: %w", err)
	}
	raw, _ := token.Extra("id_token").(string)
	id, err := provider.Verifier(&oidc.Config{ClientID: f.config.ClientID}).Verify(ctx, raw)
	if err != nil {
		return "", fmt.Errorf("verify the id token: %w", err)
	}
	if subtle.ConstantTimeCompare([]byte(id.Nonce), []byte(e.Nonce)) != 1 {
		return "", fmt.Errorf("verify the id token: %w", errors.New("it is not of this sign-in"))
	}
	var claims struct {
		Email    string `json:"email"`
		Verified bool   `json:"email_verified"`
	}
	if err := id.Claims(&claims); err != nil {
		return "", fmt.Errorf("read the id token: %w", err)
	}
	if !claims.Verified {
		return "", nil
	}
	return claims.Email, nil
}

// setErrand keeps the errand in the browser; unlike a session, it comes along on the way back from the other site.
func (v *visit) setErrand(value string, maxAge int) {
	http.SetCookie(v.w, &http.Cookie{ //nolint:gosec // not Secure on this machine alone, as the session
		Name: v.cookieName(oidcCookie), Value: value, Path: "/", MaxAge: maxAge, HttpOnly: true, SameSite: http.SameSiteLaxMode, Secure: !v.onThisMachine(),
	})
}

func (v *visit) errand() (e errand, ok bool) {
	packed, ok := v.cookie(oidcCookie)
	if !ok {
		return e, false
	}
	text, err := base64.RawURLEncoding.DecodeString(packed)
	return e, err == nil && json.Unmarshal(text, &e) == nil && e.State != ""
}
