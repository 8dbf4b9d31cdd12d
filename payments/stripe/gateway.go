package stripe

import (
	"fmt"
	"net/http"
	"time"

	sdk "github.com/stripe/stripe-go/v76"

	"holdfast/payments"
)

var _ payments.Gateway = (*Gateway)(nil)

// Gateway speaks to one Stripe account. It is safe for concurrent use.
type Gateway struct {
	key      func() string // a function, since fmt prints a field that is not exported without asking its String method
	writes   sdk.Backend   // never retries: each send is recorded before it is made
	reads    sdk.Backend   // retries twice
	livemode bool
	returnTo string // the return URL of a confirm; empty: none
}

// New returns a gateway, or an error that names every wrong field. It opens no connection.
func New(c Config) (*Gateway, error) {
	if err := c.check(); err != nil {
		return nil, fmt.Errorf("stripe configuration: %w", err)
	}
	return newGateway(c, c.transport()), nil
}

func newGateway(c Config, transport http.RoundTripper) *Gateway {
	timeout := c.Timeout
	if timeout == 0 {
		timeout = defaultTimeout
	}
	return &Gateway{
		key:      c.APIKey.Reveal,
		writes:   backend(c.BaseURL, timeout, 0, transport),
		reads:    backend(c.BaseURL, timeout, 2, transport),
		livemode: livemode(c.APIKey),
		returnTo: c.ReturnURL,
	}
}

// Livemode tells whether the key is a live one, so that real money moves.
func (g *Gateway) Livemode() bool { return g.livemode }

// backend configures the SDK without its package globals, which any other package of the binary could change.
func backend(baseURL string, timeout time.Duration, retries int64, transport http.RoundTripper) sdk.Backend {
	c := &sdk.BackendConfig{
		HTTPClient: &http.Client{
			Transport: recorder{transport},
			Timeout:   timeout,
			// A followed 307 would be a second send, to another place.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		LeveledLogger:     &sdk.LeveledLogger{Level: sdk.LevelNull}, // the SDK's debug level logs whole bodies
		MaxNetworkRetries: sdk.Int64(retries),
		EnableTelemetry:   sdk.Bool(false),
	}
	if baseURL != "" {
		c.URL = sdk.String(baseURL)
	}
	return sdk.GetBackendWithConfig(sdk.APIBackend, c)
}
