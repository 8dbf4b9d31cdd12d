package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/internal/clients"
	"holdfast/internal/console"
)

func TestSignIn(t *testing.T) {
	t.Parallel()
	b := setup(t)
	v := b.visitor()
	a := v.get("/effects?kind=charge&stuck=1")
	require.Equal(t, "/console/sign-in?then=%2Fconsole%2Feffects%3Fkind%3Dcharge%26stuck%3D1&why=", a.at)
	a = v.post("/sign-in", "token", " "+b.operator.Reveal()+"\n", "then", "/console/effects?kind=charge&stuck=1")
	require.Equal(t, http.StatusOK, a.status)
	require.Equal(t, "/console/effects?kind=charge&stuck=1", a.at, "back where one wanted to go")
	require.Contains(t, a.body, "Olga")

	page, err := url.Parse(b.url + console.Root)
	require.NoError(t, err)
	cookies := v.http.Jar.Cookies(page)
	require.Len(t, cookies, 1)
	require.NotContains(t, b.operator.Reveal(), cookies[0].Value)
	require.Equal(t, 1, scan[int](b, `SELECT count(*) FROM console_sessions WHERE hash = sha256($1::bytea)`, []byte(cookies[0].Value)), "its hash is all that is kept")

	a = v.post("/sign-out", v.fields("/")...)
	require.Equal(t, "/console/sign-in", a.at)
	require.Zero(t, scan[int](b, `SELECT count(*) FROM console_sessions`))
	require.Contains(t, v.get("/").at, "/console/sign-in")
}

// The cookie is out of reach of scripts and other sites; beyond this machine it is bound to its host and to HTTPS.
func TestCookie(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for host, want := range map[string]string{
		"127.0.0.1:8080":           "holdfast_session=%; Path=/; HttpOnly; SameSite=Strict",
		"localhost":                "holdfast_session=%; Path=/; HttpOnly; SameSite=Strict",
		"[::1]:8080":               "holdfast_session=%; Path=/; HttpOnly; SameSite=Strict",
		"ops.example.org":          "__Host-holdfast_session=%; Path=/; HttpOnly; Secure; SameSite=Strict",
		"127.0.0.1.example.org:80": "__Host-holdfast_session=%; Path=/; HttpOnly; Secure; SameSite=Strict",
	} {
		v := b.visitor()
		v.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
		r := v.form("/sign-in", "token", b.operator.Reveal())
		r.Host = host
		a := v.do(r)
		require.Equal(t, http.StatusSeeOther, a.status, host)
		name, rest, _ := strings.Cut(a.header.Get("Set-Cookie"), "=")
		_, rest, _ = strings.Cut(rest, ";")
		require.Equal(t, want, name+"=%;"+rest, host)
	}
	a := b.visitor().get("/sign-in?then=/console/&why=lost")
	require.Contains(t, a.body, "needs HTTPS", "a browser that did not keep it is told so")
}

// Who is no operator is not let in, and what was sent is not kept.
func TestOnlyOperatorsAreLetIn(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for name, c := range map[string]struct {
		token  domain.Secret
		status int
		says   string
	}{
		"customer": {b.token("customer", clients.BookingsRead, clients.BookingsWrite), http.StatusForbidden, "not for customers"},
		"unknown":  {domain.Secret("hf_" + strings.Repeat("A", 43)), http.StatusUnauthorized, "opens nothing"},
		"nonsense": {`<script>`, http.StatusUnauthorized, "opens nothing"},
		"nothing":  {"", http.StatusUnauthorized, "opens nothing"},
	} {
		v := b.visitor()
		a := v.post("/sign-in", "token", c.token.Reveal())
		require.Equal(t, c.status, a.status, name)
		require.Contains(t, a.body, c.says, name)
		require.NotContains(t, a.body, `value="hf_`, name)
		require.Contains(t, v.get("/").at, "/console/sign-in", name)
	}
	require.Zero(t, scan[int](b, `SELECT count(*) FROM console_sessions`))
}

// A token's end is its sessions' end, and a page that is open then goes to the sign-in page by itself.
func TestRevokedTokenEndsItsSessions(t *testing.T) {
	t.Parallel()
	b := setup(t)
	v := b.signedIn(b.operator)
	_, charge := b.book()
	fields := v.fields("/effects/" + charge.String() + "/replay")
	b.exec(`UPDATE api_tokens SET revoked_at = clock_timestamp() WHERE scopes = '{operator}'`)
	a := v.get("/", "HX-Request", "true")
	require.Equal(t, http.StatusUnauthorized, a.status)
	require.Equal(t, "true", a.header.Get("HX-Refresh"))
	a = v.post("/effects/"+charge.String()+"/replay", append(fields, "reason", "too late")...)
	require.Contains(t, a.at, "/console/sign-in")
	require.Zero(t, b.audits())
}

func TestSignInAttemptsAreLimited(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *console.Config) { c.SignInsPerMinute = 3 })
	v := b.visitor()
	for range 3 {
		require.Equal(t, http.StatusUnauthorized, v.post("/sign-in", "token", "hf_guess").status)
	}
	a := v.post("/sign-in", "token", b.operator.Reveal())
	require.Equal(t, http.StatusTooManyRequests, a.status)
	require.NotEmpty(t, a.header.Get("Retry-After"))
	require.Contains(t, a.body, "Wait a minute")
}

// A link in a chat comes from another site, and so without the cookie: the page sends itself once more, from here.
func TestLinkFromAnotherSiteWorks(t *testing.T) {
	t.Parallel()
	b := setup(t)
	a := b.visitor().get("/effects?stuck=1", "Sec-Fetch-Site", "cross-site")
	require.Equal(t, "/console/effects?stuck=1", a.at)
	require.Contains(t, a.body, `<meta http-equiv="refresh" content="0; url=/console/effects?stuck=1">`)
	for _, elsewhere := range []string{"https://example.org/", "//example.org", "/\\example.org", "/v1/bookings", "/consolex", "/console/\\x", ""} {
		v := b.visitor()
		a := v.post("/sign-in", "token", b.operator.Reveal(), "then", elsewhere)
		require.Equal(t, "/console/", a.at, "%q", elsewhere)
	}
}
