package client

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Config is what a Client needs. Durations of zero take their defaults.
type Config struct {
	URL   string // of the API, such as https://holdfast.example: no query, no user
	Token Token  // kept out of every error, and of every formatting of Config and Client

	Timeout    time.Duration // for a whole call with all its retries, if its context has no deadline; default 1 minute
	TryTimeout time.Duration // for one send and its answer; default 15 s, which is longer than the API takes
	MinBackoff time.Duration // before the first retry; doubles with each; default 100 ms
	MaxBackoff time.Duration // between two tries, unless Retry-After asks for more; default 5 s

	Transport http.RoundTripper // default: http.DefaultTransport. One that follows redirects or logs headers gives the token away
}

const (
	defaultTimeout    = time.Minute
	defaultTryTimeout = 15 * time.Second
	defaultMinBackoff = 100 * time.Millisecond
	defaultMaxBackoff = 5 * time.Second
)

// Client calls the API. It is safe for concurrent use.
type Client struct {
	base          string
	authorization func() string // a function, since %+v prints what fields hold, unexported ones too
	http          *http.Client
	timeout       time.Duration
	tryTimeout    time.Duration
	minBackoff    time.Duration
	maxBackoff    time.Duration
}

// New makes a Client. Nothing is sent.
func New(config Config) (*Client, error) {
	base, err := url.Parse(config.URL)
	if err != nil || (base.Scheme != "http" && base.Scheme != "https") || base.Host == "" ||
		base.User != nil || base.RawQuery != "" || base.Fragment != "" {
		return nil, errors.New("config.URL: want an address such as https://holdfast.example, without user, query and fragment")
	}
	if config.Token == "" || !visibleASCII(string(config.Token)) {
		return nil, errors.New("config.Token: want an API token of visible ASCII characters")
	}
	c := &Client{
		base:          strings.TrimSuffix(config.URL, "/"),
		authorization: func() string { return "Bearer " + string(config.Token) },
		timeout:       config.Timeout, tryTimeout: config.TryTimeout,
		minBackoff: config.MinBackoff, maxBackoff: config.MaxBackoff,
	}
	for _, d := range []struct {
		name  string
		value *time.Duration
		or    time.Duration
	}{
		{"Timeout", &c.timeout, defaultTimeout},
		{"TryTimeout", &c.tryTimeout, defaultTryTimeout},
		{"MinBackoff", &c.minBackoff, defaultMinBackoff},
		{"MaxBackoff", &c.maxBackoff, defaultMaxBackoff},
	} {
		if *d.value < 0 {
			return nil, fmt.Errorf("config.%s: want a positive duration, or 0 for %s", d.name, d.or)
		}
		if *d.value == 0 {
			*d.value = d.or
		}
	}
	c.http = &http.Client{
		Transport: config.Transport,
		// The API never redirects: whoever does is something between, which must not be handed the token elsewhere.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return c, nil
}

// visibleASCII says whether a text can stand in a header as it is.
func visibleASCII(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' })
}
