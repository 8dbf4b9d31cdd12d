package console

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"strings"

	"holdfast/domain"
	"holdfast/internal/clients"
)

const (
	sessionCookie = "holdfast_session"
	flashCookie   = "holdfast_said"
	maxFlash      = 2000
)

// letIn are the scopes of which one is needed to sign in.
func (c *Console) letIn() []clients.Scope {
	scopes := []clients.Scope{
		clients.Operator, clients.OperatorRead, clients.OperatorReplay, clients.OperatorRepublish, clients.OperatorResolve,
		clients.OperatorRefund, clients.OperatorDiscard, clients.OperatorPause,
	}
	if c.config.Books != nil {
		scopes = append(scopes, clients.Finance)
	}
	return scopes
}

// signInPage is the page before all others.
type signInPage struct {
	Then    string // where to go afterwards
	Problem string
	OIDC    string // the provider's name; empty: there is none
}

func (c *Console) showSignIn(v *visit) error {
	page := signInPage{Then: inside(v.query("then"))}
	if session, ok := v.cookie(sessionCookie); ok {
		if _, err := v.c.config.Sessions.Resume(v.r.Context(), domain.Secret(session), true); err == nil {
			http.Redirect(v.w, v.r, page.Then, http.StatusSeeOther)
			return nil
		}
	}
	switch v.query("why") {
	case "over":
		page.Problem = "You are signed out: the session was too long without use, or its time is over, or its token is not valid any more."
	case "lost":
		page.Problem = "Your browser has not kept the session. The console needs HTTPS, except on the machine that it runs on, and a browser that keeps cookies."
	}
	v.askForToken(http.StatusOK, page)
	return nil
}

// askForToken answers with the form.
func (v *visit) askForToken(status int, page signInPage) {
	page.OIDC = v.c.oidc.name()
	v.render(status, "signin", "Sign in", page)
}

// signIn lets in who holds a token with a scope of operators, or finance's. The token is not kept.
func (c *Console) signIn(v *visit) error {
	if !c.signIns.allow(v.r.RemoteAddr) {
		v.w.Header().Set("Retry-After", "60")
		v.askForToken(http.StatusTooManyRequests, signInPage{Then: inside(v.form("then")), Problem: "Too many attempts from here. Wait a minute."})
		return nil
	}
	who, err := c.config.Clients.Authenticate(v.r.Context(), domain.Secret(v.form("token")))
	switch {
	case errors.Is(err, clients.ErrUnauthenticated):
		v.askForToken(http.StatusUnauthorized, signInPage{
			Then: inside(v.form("then")), Problem: "This token opens nothing: it is unknown, expired or revoked. Look whether it was copied whole; it begins with hf_.",
		})
		return nil
	case err != nil:
		return err
	}
	if !anyOf(who, c.letIn()) {
		v.askForToken(http.StatusForbidden, signInPage{Then: inside(v.form("then")), Problem: notLetIn})
		return nil
	}
	return v.begin(who, inside(v.form("then")))
}

const notLetIn = "This token is valid, but it is neither an operator's nor finance's: it has no scope operator, none that begins with operator:, " +
	"and not finance. It is for the API; the console is not for customers."

// begin starts the session and goes on by way of the sign-in page, which tells if the browser did not keep the cookie.
func (v *visit) begin(who clients.Principal, then string) error {
	session, err := v.c.config.Sessions.Begin(v.r.Context(), who.TokenID)
	if err != nil {
		return err
	}
	v.setCookie(sessionCookie, session.Reveal(), 0)
	return v.see("/sign-in", "then", then, "why", "lost")
}

// signOut ends the session, here and in the database.
func (c *Console) signOut(v *visit) error {
	if err := c.config.Sessions.End(v.r.Context(), v.session); err != nil {
		return err
	}
	v.setCookie(sessionCookie, "", -1)
	return v.see("/sign-in")
}

// askToSignIn sends who is not signed in to the page for it, and back afterwards.
func (v *visit) askToSignIn(was bool) {
	then := Root + "/"
	if v.r.Method == http.MethodGet {
		then = v.r.URL.RequestURI()
	}
	why := ""
	if was {
		why = "over"
		v.setCookie(sessionCookie, "", -1)
	}
	switch {
	case v.r.Header.Get("HX-Request") != "":
		v.w.Header().Set("HX-Refresh", "true") // the whole page comes again, and then asks
		v.w.WriteHeader(http.StatusUnauthorized)
	case !was && v.r.Method == http.MethodGet && v.r.Header.Get("Sec-Fetch-Site") == "cross-site":
		// A link in a chat or an alert: the browser shows no strict cookie to it. Coming once more from here, it does.
		v.render(http.StatusOK, "bounce", "Holdfast", then)
	default:
		_ = v.see("/sign-in", "then", then, "why", why)
	}
}

// inside is a path of this console, whatever was asked for.
func inside(path string) string {
	if !strings.HasPrefix(path, Root+"/") || strings.ContainsAny(path, "\\\r\n") || strings.HasPrefix(path, Root+"/sign-") {
		return Root + "/"
	}
	return path
}

// cookie reads a cookie of ours.
func (v *visit) cookie(name string) (string, bool) {
	found, err := v.r.Cookie(v.cookieName(name))
	if err != nil || found.Value == "" {
		return "", false
	}
	return found.Value, true
}

// setCookie sets a cookie that scripts cannot read and other sites do not send. Beyond this machine it is bound to this host and
// to HTTPS; on this machine, where there is no HTTPS, a browser would not keep such a one.
func (v *visit) setCookie(name, value string, maxAge int) {
	http.SetCookie(v.w, &http.Cookie{ //nolint:gosec // not Secure on this machine alone, see above
		Name: v.cookieName(name), Value: value, Path: "/", MaxAge: maxAge, HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: !v.onThisMachine(),
	})
}

func (v *visit) cookieName(name string) string {
	if v.onThisMachine() {
		return name
	}
	return "__Host-" + name
}

// onThisMachine tells whether the browser has come over loopback, without HTTPS.
func (v *visit) onThisMachine() bool {
	host, _, err := net.SplitHostPort(v.r.Host)
	if err != nil {
		host = v.r.Host
	}
	host = strings.Trim(host, "[]")
	ip := net.ParseIP(host)
	return v.r.TLS == nil && (host == "localhost" || ip != nil && ip.IsLoopback())
}

// said is what an act has led to, for the next page to show.
type said struct {
	Text string `json:"text"`
	Bad  bool   `json:"bad,omitempty"`
}

// say keeps it until the next page.
func (v *visit) say(text string) {
	if runes := []rune(text); len(runes) > maxFlash/4 {
		text = string(runes[:maxFlash/4]) + "…"
	}
	packed, _ := json.Marshal(said{Text: text}) // cannot fail: a string
	v.setCookie(flashCookie, base64.RawURLEncoding.EncodeToString(packed), 60)
}

// takeSaid reads it, once.
func (v *visit) takeSaid() *said {
	packed, ok := v.cookie(flashCookie)
	if !ok || v.r.Header.Get("HX-Request") != "" {
		return nil
	}
	v.setCookie(flashCookie, "", -1)
	var s said
	text, err := base64.RawURLEncoding.DecodeString(packed)
	if err != nil || json.Unmarshal(text, &s) != nil {
		return nil
	}
	return &s
}

func anyOf(who clients.Principal, scopes []clients.Scope) bool {
	for _, s := range scopes {
		if who.Can(s) {
			return true
		}
	}
	return false
}
