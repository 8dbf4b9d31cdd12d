package console_test

import (
	"html"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// anotherSite lets a page elsewhere send the very form of a session, its token included, to the console of who is signed in.
func anotherSite(b *bed) {
	_, charge := b.book()
	b.park(charge, "why")
	p := b.tab()
	p.signIn(b.operator)
	at := "/effects/" + charge.String() + "/replay"
	p.open(at)
	fields := map[string]string{
		"csrf": eval[string](p, `document.querySelector("[name=csrf]").value`), "seen": eval[string](p, `document.querySelector("[name=seen]").value`),
		"reason": "not mine",
	}
	var form strings.Builder
	form.WriteString(`<!doctype html><form method="post" action="` + b.url + "/console" + at + `">`)
	for name, value := range fields {
		form.WriteString(`<input name="` + name + `" value="` + html.EscapeString(value) + `">`)
	}
	form.WriteString(`<button>A prize</button></form><script>document.forms[0].submit()</script>`)
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte(form.String()))
	}))
	b.Cleanup(elsewhere.Close)
	p.do(chromedp.Navigate(strings.Replace(elsewhere.URL, "127.0.0.1", "localhost", 1)))
	p.says("was not sent from a page of the console")
	require.Zero(b, b.audits())
	require.Equal(b, "parked", scan[string](b, `SELECT status FROM outbox WHERE id = $1`, charge))
	require.Equal(b, b.url+"/console"+at, eval[string](p, `location.href`), "it came as far as the console")
}
