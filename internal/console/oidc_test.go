package console_test

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/oauth2-proxy/mockoidc"
	"github.com/stretchr/testify/require"

	"holdfast/internal/clients"
	"holdfast/internal/console"
)

// vouched is a console with an identity provider.
func vouched(t *testing.T) (*bed, *mockoidc.MockOIDC) {
	t.Helper()
	idp, err := mockoidc.Run()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, idp.Shutdown()) })
	config := &console.OIDC{Issuer: idp.Issuer(), ClientID: idp.ClientID, ClientSecret: secret(idp.ClientSecret)}
	b := setup(t, func(c *console.Config) { c.OIDC = config })
	return b, idp
}

func TestIdentityProviderLetsOperatorsIn(t *testing.T) {
	t.Parallel()
	b, idp := vouched(t)
	b.token("olga@example.org", clients.OperatorReplay)
	b.token("carl@example.org", clients.BookingsRead)
	for name, c := range map[string]struct {
		user *mockoidc.MockUser
		says string
	}{
		"no operator":  {&mockoidc.MockUser{Subject: "1", Email: "carl@example.org", EmailVerified: true}, "no client of this name holds a valid token of an operator"},
		"unknown":      {&mockoidc.MockUser{Subject: "2", Email: "<script>@example.org", EmailVerified: true}, "no client of this name"},
		"not verified": {&mockoidc.MockUser{Subject: "3", Email: "olga@example.org"}, "does not say that your e-mail address is verified"},
	} {
		idp.QueueUser(c.user)
		v := b.visitor()
		a := v.get("/oidc/start?then=/console/audit")
		require.Equal(t, http.StatusForbidden, a.status, name)
		require.Contains(t, a.body, c.says, name)
		require.NotContains(t, a.body, "<script>@", name)
		require.Contains(t, v.get("/").at, "/console/sign-in", name)
	}
	require.Contains(t, b.visitor().get("/sign-in").body, "sign in with 127.0.0.1")

	idp.QueueUser(&mockoidc.MockUser{Subject: "4", Email: "olga@example.org", EmailVerified: true})
	v := b.visitor()
	a := v.get("/oidc/start?then=/console/audit")
	require.Equal(t, http.StatusOK, a.status, a.body)
	require.Contains(t, a.body, `content="0; url=/console/sign-in?then=%2Fconsole%2Faudit&amp;why=lost"`)
	a = v.get("/sign-in?then=/console/audit&why=lost")
	require.Equal(t, "/console/audit", a.at)
	require.Contains(t, a.body, "olga@example.org")
	require.Equal(t, http.StatusForbidden, v.get("/bookings/x/refund").status, "with the scopes of the token, and no others")
	b.exec(`UPDATE api_tokens SET revoked_at = clock_timestamp()`)
	require.Contains(t, v.get("/").at, "/console/sign-in", "the token's end is the session's")
}

// A sign-in that another browser, or nobody, has begun lets nobody in.
func TestForgedSignIns(t *testing.T) {
	t.Parallel()
	b, idp := vouched(t)
	b.token("olga@example.org", clients.Operator)
	idp.QueueUser(&mockoidc.MockUser{Subject: "4", Email: "olga@example.org", EmailVerified: true})
	v := b.visitor()
	var back *url.URL // as the identity provider sends the browser back
	v.http.CheckRedirect = func(r *http.Request, _ []*http.Request) error {
		if r.URL.Path == console.Root+"/oidc/callback" {
			back = r.URL
			return http.ErrUseLastResponse
		}
		return nil
	}
	v.get("/oidc/start")
	require.NotNil(t, back)
	callback := "/oidc/callback?" + back.RawQuery
	query := back.Query()
	query.Set("state", "another")
	require.Equal(t, http.StatusForbidden, b.visitor().get(callback).status, "another browser")
	require.Equal(t, http.StatusForbidden, v.get("/oidc/callback?"+query.Encode()).status, "another state")
	require.Equal(t, http.StatusForbidden, v.get(callback).status, "an errand is run once")
	require.Equal(t, http.StatusForbidden, b.visitor().get("/oidc/callback").status)
	require.Zero(t, scan[int](b, `SELECT count(*) FROM console_sessions`))
}

func TestIdentityProviderThatIsAway(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *console.Config) {
		c.OIDC = &console.OIDC{Issuer: "http://127.0.0.1:1", ClientID: "x", ClientSecret: "x", RedirectURL: "http://127.0.0.1:1/"}
	})
	a := b.visitor().get("/oidc/start")
	require.Equal(t, http.StatusBadGateway, a.status)
	require.Contains(t, a.body, "sign in with a token")
	b.signedIn(b.operator)
	require.Equal(t, http.StatusNotFound, setup(t).visitor().get("/oidc/start").status, "without one, there is no such page")
}
