package stripe

import (
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"holdfast/domain"
)

const defaultTimeout = 30 * time.Second

// Config says which account to speak to, and how.
type Config struct {
	// APIKey is the account's secret or restricted key: sk_test_…, sk_live_…, rk_test_… or rk_live_….
	APIKey domain.Secret
	// BaseURL is where the API is. Empty means Stripe itself. A live key is never sent over plain HTTP.
	BaseURL string
	// Timeout bounds one HTTP exchange, the body included. Zero means 30 s. A read makes up to three exchanges.
	Timeout time.Duration
	// ReturnURL is where a bank's check sends the customer back to: https, or http on this machine. It is frozen with the
	// parameters of a confirm, so that a change concerns new confirms only. With it the customer's next action is a page to
	// open, without it one for the provider's own library.
	ReturnURL string
	// HTTPTransport is how connections are made; it is copied, and speaks HTTP/1.1 whatever it says. Nil means a
	// transport of our own. It is no http.RoundTripper, since "not sent" rests on net/http's own account of what it
	// wrote, and a stranger might give none.
	HTTPTransport *http.Transport
}

var (
	errAPIKey  = errors.New("field APIKey: want sk_test_, sk_live_, rk_test_ or rk_live_ and then letters and digits")
	errBaseURL = errors.New("field BaseURL: want an http or https URL without user, query or fragment")
	errReturn  = errors.New("field ReturnURL: want an https URL without user, or an http one on a loopback address")
	errPlain   = errors.New("field BaseURL: a live key is not sent over plain http")
	errTimeout = errors.New("field Timeout: want a positive duration, or zero for 30 s")
)

// check answers in the fields' names, and repeats no value: each may hold a secret.
func (c Config) check() error {
	var problems []error
	if !keyShape().MatchString(c.APIKey.Reveal()) {
		problems = append(problems, errAPIKey)
	}
	if c.Timeout < 0 {
		problems = append(problems, errTimeout)
	}
	if c.ReturnURL != "" && !returnable(c.ReturnURL) {
		problems = append(problems, errReturn)
	}
	if c.BaseURL != "" {
		u, err := url.Parse(c.BaseURL)
		switch {
		case err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "",
			u.Scheme != "http" && u.Scheme != "https":
			problems = append(problems, errBaseURL)
		case u.Scheme == "http" && livemode(c.APIKey):
			problems = append(problems, errPlain)
		}
	}
	return errors.Join(problems...)
}

func returnable(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" || u.User != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	local := u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
	return u.Scheme == "https" || u.Scheme == "http" && local
}

func keyShape() *regexp.Regexp { return regexp.MustCompile(`\A[sr]k_(test|live)_[A-Za-z0-9_]+\z`) }

func livemode(key domain.Secret) bool {
	return strings.HasPrefix(key.Reveal(), "sk_live_") || strings.HasPrefix(key.Reveal(), "rk_live_")
}

// transport is a private copy that speaks HTTP/1.1 only: what a trace of HTTP/2 proves, and what net/http replays there,
// has not been measured.
func (c Config) transport() *http.Transport {
	t := &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		MaxIdleConnsPerHost: 64, // one per worker; with the default of two most sends would dial
		IdleConnTimeout:     time.Minute,
		TLSHandshakeTimeout: 10 * time.Second,
	}
	if c.HTTPTransport != nil {
		t = c.HTTPTransport.Clone()
	}
	t.Protocols = new(http.Protocols)
	t.Protocols.SetHTTP1(true)
	t.ForceAttemptHTTP2 = false
	t.TLSNextProto = map[string]func(string, *tls.Conn) http.RoundTripper{} // a copied transport may have learned HTTP/2
	if t.TLSClientConfig != nil {
		t.TLSClientConfig.NextProtos = []string{"http/1.1"} // and offers it in the handshake
	}
	return t
}
