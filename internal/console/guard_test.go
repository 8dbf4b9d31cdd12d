package console_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/internal/clients"
)

func TestEveryAnswerIsGuarded(t *testing.T) {
	t.Parallel()
	b := setup(t)
	v := b.signedIn(b.operator)
	for _, at := range []string{"/", "/effects?stuck=1", "/sign-in", "/nowhere", "/effects/" + domain.NewID[domain.EffectID]().String(), "/assets/console.css", "/assets/nothing.js"} {
		a := v.get(at)
		policy := a.header.Get("Content-Security-Policy")
		for _, want := range []string{"default-src 'none'", "script-src 'self'", "form-action 'self'", "frame-ancestors 'none'", "base-uri 'none'"} {
			require.Contains(t, policy, want, at)
		}
		require.NotContains(t, policy, "unsafe", at)
		require.Equal(t, "nosniff", a.header.Get("X-Content-Type-Options"), at)
		require.Equal(t, "no-referrer", a.header.Get("Referrer-Policy"), at)
		if !strings.HasPrefix(at, "/assets/console.css") {
			require.Equal(t, "no-store", a.header.Get("Cache-Control"), at)
		}
		require.NotContains(t, a.body, "<style", at)
		require.NotContains(t, a.body, " style=", at)
		require.NotRegexp(t, `<script(?:[^>]*)>[^<]`, a.body, at)
		require.NotRegexp(t, `(?:src|href)="(?:https?:)?//`, a.body, "%s: nothing comes from elsewhere", at)
	}
	require.Equal(t, http.StatusSeeOther, func() int {
		w := b.visitor()
		w.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
		return w.get("").status
	}())
}

// What was not sent from a form of this session is refused, and nothing changes.
func TestForgedForms(t *testing.T) {
	t.Parallel()
	b := setup(t)
	v := b.signedIn(b.operator)
	_, charge := b.book()
	b.park(charge, "why")
	at := "/effects/" + charge.String() + "/replay"
	good := append(v.fields(at), "reason", "a reason")
	other := append(b.signedIn(b.operator).fields(at), "reason", "a reason")
	csrf := slices.Index(good, "csrf") + 1
	with := func(token string) []string {
		fields := slices.Clone(good)
		fields[csrf] = token
		return fields
	}
	for name, r := range map[string]*http.Request{
		"another session's token": v.form(at, other...),
		"no token":                v.form(at, "reason", "a reason"),
		"an empty token":          v.form(at, with("")...),
		"a wrong token":           v.form(at, with(good[csrf][1:]+"A")...),
		"the token in the query":  v.form(at+"?csrf="+good[csrf], "reason", "a reason"),
		"from another site": func() *http.Request {
			r := v.form(at, good...)
			r.Header.Set("Sec-Fetch-Site", "cross-site")
			return r
		}(),
		"from another origin": func() *http.Request {
			r := v.form(at, good...)
			r.Header.Set("Origin", "https://example.org")
			return r
		}(),
	} {
		a := v.do(r)
		require.Equal(t, http.StatusForbidden, a.status, name)
		require.Contains(t, a.body, "othing was done", name)
	}
	require.Zero(t, b.audits())
	require.Equal(t, "parked", scan[string](b, `SELECT status FROM outbox WHERE id = $1`, charge))
	for _, post := range []string{"/sign-out", "/runs", "/pauses/charge", "/requests/" + domain.NewID[domain.EffectID]().String() + "/approve"} {
		require.Equal(t, http.StatusForbidden, v.post(post, "to", "paused", "reason", "x").status, post)
	}
	require.Equal(t, http.StatusOK, v.post(at, good...).status)
	require.Equal(t, 1, b.audits(), "and the form itself is taken")
}

// What a token's scopes do not allow is not offered, and refused.
func TestScopes(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, charge := b.book()
	b.park(charge, "why")
	at := "/effects/" + charge.String()
	reader, replayer := b.signedIn(b.token("Rita", clients.OperatorRead)), b.signedIn(b.token("Rolf", clients.OperatorReplay))

	require.NotContains(t, reader.get(at).body, at+"/replay")
	require.Contains(t, reader.get(at).body, "Your token lets you look")
	require.Contains(t, replayer.get(at).body, at+"/replay")
	require.NotContains(t, replayer.get(at).body, at+"/discard")
	csrf := reader.fields("/")
	for _, act := range []string{"replay", "republish", "resolve", "discard"} {
		require.Equal(t, http.StatusForbidden, reader.get(at+"/"+act).status, act)
		require.Equal(t, http.StatusForbidden, reader.post(at+"/"+act, append(csrf, "reason", "x")...).status, act)
	}
	require.Equal(t, http.StatusForbidden, reader.post("/pauses/charge", append(csrf, "to", "paused", "reason", "x")...).status)
	require.Equal(t, http.StatusForbidden, reader.get("/runs/new").status)
	require.Equal(t, http.StatusForbidden, reader.get("/bookings/"+charge.String()+"/refund").status)
	require.Zero(t, b.audits())
	a := replayer.post(at+"/replay", append(replayer.fields(at+"/replay"), "reason", "the card network is back")...)
	require.Equal(t, "/console"+at, a.at, a.body)
	require.Equal(t, "Rolf", scan[string](b, `SELECT actor FROM operator_actions`))
}

// Whatever is asked, the answer is a page that says what to do; none is a fault of ours.
func TestBadInputIsAnsweredWithAPage(t *testing.T) {
	t.Parallel()
	b := setup(t)
	v := b.signedIn(b.operator)
	unknown := domain.NewID[domain.EffectID]().String()
	for at, status := range map[string]int{
		"/nowhere": 404, "/effects/": 404, "/effects/x": 404, "/effects/" + unknown: 404, "/effects/" + unknown + "/replay": 404,
		"/effects/" + unknown + "/fly": 404, "/find?q=": 404, "/find?q=%3Cscript%3E": 404, "/find?q=" + unknown: 404,
		"/effects?kind=nope": 400, "/effects?status=nope": 400, "/effects?older=soon": 400, "/effects?older=-1h": 400, "/effects?stuck=maybe": 400,
		"/effects?after=nonsense": 400, "/effects?kind=%00": 400, "/effects?kind=%ff": 400, "/effects?kind=%zz": 400,
		"/audit?booking=x": 400, "/audit?actor=%00": 400, "/runs/new?cap=0": 400, "/runs/new?cap=10001": 400, "/runs/new?act=fly": 400,
		"/runs/x": 404, "/requests/x": 404, "/bookings/x": 404,
	} {
		a := v.get(at)
		require.Equal(t, status, a.status, "%s\n%s", at, a.body)
		require.Contains(t, a.body, `role="alert"`, at)
		require.Contains(t, a.body, "Overview", at)
	}
	csrf := v.fields("/")
	for at, fields := range map[string][]string{
		"/effects/" + unknown + "/replay": {"reason", ""},
		"/effects/" + unknown + "/fly":    {"reason", "x"},
		"/pauses/charge":                  {"to", "sideways", "reason", "x"},
		"/pauses/cancel":                  {"to", "paused", "reason", "x"},
		"/runs":                           {"act", "replay", "reason", "x"},
	} {
		a := v.post(at, append(slices.Clone(csrf), fields...)...)
		require.GreaterOrEqual(t, a.status, 400, at)
		require.Less(t, a.status, 500, "%s\n%s", at, a.body)
	}
	long := append(slices.Clone(csrf), "reason", strings.Repeat("x", 501))
	require.Equal(t, http.StatusUnprocessableEntity, v.post("/effects/"+unknown+"/replay", long...).status)
	huge := append(slices.Clone(csrf), "reason", strings.Repeat("x", 70_000))
	require.Equal(t, http.StatusRequestEntityTooLarge, v.post("/effects/"+unknown+"/replay", huge...).status)
	require.Equal(t, http.StatusMethodNotAllowed, v.do(v.request(http.MethodDelete, "/effects", nil)).status)
	require.Equal(t, http.StatusMethodNotAllowed, v.post("/audit", csrf...).status)
	require.Zero(t, b.audits())
}
