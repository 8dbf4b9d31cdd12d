package console_test

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/internal/testbrowser"
)

// axe checks what a page offers to people with disabilities.
//
//go:embed testdata/axe/axe.min.js
var axe string

// TestBrowser is every test that needs one: a Chromium that they share, each in a tab with cookies of its own.
func TestBrowser(t *testing.T) {
	t.Parallel()
	var err error
	chromium, err = testbrowser.Start()
	require.NoError(t, err)
	t.Cleanup(chromium.Stop) // after the parallel ones
	for name, test := range map[string]func(*bed){
		"every page is fit for everybody, and runs nothing that others wrote": everyPage,
		"an act can be done by keyboard alone":                                byKeyboard,
		"a page refreshes itself and leaves its reader alone":                 live,
		"a bulk run goes on after an interruption, and does each effect once": bulk,
		"another site cannot act for who is signed in":                        anotherSite,
		"finance closes a month, and sees finance's pages only":               books,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(setup(t))
		})
	}
}

// everyPage looks at each page, full of what somebody wrote who wants it to run: in light and dark, and on a telephone.
func everyPage(b *bed) {
	parked := b.outage()
	paid := b.paid()
	b.newResource(25_000)
	dear := b.paid()
	who := b.token("Eve "+evil, "operator")
	v := b.signedIn(who)
	do := func(at string, fields ...string) string {
		a := v.post(at, append(v.fields(at), fields...)...)
		require.Equal(b, 200, a.status, a.body)
		return a.at[len("/console"):]
	}
	_, other := b.book()
	b.park(other, "why")
	do("/effects/"+other.String()+"/replay", "reason", "a reason "+evil)
	request := do("/bookings/"+dear.String()+"/refund", "minor", "0", "reason", "too dear "+evil)
	require.Contains(b, request, "/requests/")
	run := v.post("/runs", append(v.fields("/runs/new?act=replay&stuck=1&kind=publish"), "act", "replay", "stuck", "1", "kind", "publish", "cap", "3", "reason", "all of them "+evil)...).at[len("/console"):]
	v.post("/pauses/charge", append(v.fields("/pauses"), "to", "paused", "reason", "the bank is down "+evil)...)
	b.exec(`INSERT INTO river_job (args, kind, max_attempts, queue, state) VALUES ('{}', $1, 1, 'default', 'available')`, "evil "+evil[:30])

	pages := map[string]string{
		"overview": "/", "stuck": "/effects?stuck=1", "effects-empty": "/effects?kind=refresh&status=parked", "effect": "/effects/" + parked.String(),
		"replay": "/effects/" + parked.String() + "/replay", "discard": "/effects/" + parked.String() + "/discard", "booking": "/bookings/" + paid.String(),
		"refund": "/bookings/" + paid.String() + "/refund?amount=12.50", "requests": "/requests", "request": request, "runs": "/runs", "run": run,
		"new-run": "/runs/new?act=replay&stuck=1", "pauses": "/pauses", "audit": "/audit", "runbook": "/runbook", "trouble": "/effects/nothing",
	}
	p := b.tab()
	p.open("/sign-in")
	p.judge("sign-in")
	p.signIn(who)
	for name, at := range pages {
		sep := "?"
		if strings.Contains(at, "?") {
			sep = "&"
		}
		p.open(at + sep + "live=off") // nothing moves while it is looked at
		p.judge(name)
	}
}

// judge looks at the page that is open.
func (t *tab) judge(name string) {
	t.Helper()
	t.do(media("light"), chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := chromedp.Evaluate[any](axe+";0")(ctx, target)
		return err
	}))
	t.fit(name, "")
	t.shoot(name + "-light")
	t.do(media("dark"))
	t.fit(name+" in the dark", `, runOnly: ["color-contrast"]`)
	if pictured() {
		t.shoot(name + "-dark")
	}
	t.looks(360, "light")
	require.LessOrEqual(t, eval[int64](t, `document.documentElement.scrollWidth`), int64(360), "%s scrolls sideways", name)
	if pictured() {
		t.shoot(name + "-360")
	}
	t.looks(1280, "light")
	require.Equal(t, "undefined", eval[string](t, `typeof window.pwned`), "%s has run what somebody wrote", name)
	require.Zero(t, eval[int](t, `document.querySelectorAll("img:not(.brand img), main script").length`), "%s has taken text for elements", name)
}

// fit asks axe for what is serious or critical.
func (t *tab) fit(name, rules string) {
	t.Helper()
	found, err := chromedp.Run(t.ctx, chromedp.Evaluate[string](fmt.Sprintf(`axe.run(document, {resultTypes: ["violations"]%s}).then(r => JSON.stringify(
		r.violations.filter(v => ["serious", "critical"].includes(v.impact)).map(v => v.id + ": " + v.help + " " + v.nodes.map(n => n.html).join(" "))))`, rules),
		chromedp.EvalAwaitPromise))
	require.NoError(t, err, name)
	var problems []string
	require.NoError(t, json.Unmarshal([]byte(found), &problems))
	require.Empty(t, problems, name)
}

// live sees that what changes is shown, and that neither focus nor selection goes.
func live(b *bed) {
	b.outage()
	p := b.tab()
	p.signIn(b.operator)
	p.open("/effects?stuck=1&kind=charge")
	p.until(`document.querySelector("tbody tr")`)
	rows := eval[int](p, `document.querySelectorAll("tbody tr").length`)
	eval[bool](p, `(() => { window.same = document.querySelector("tbody tr td a"); same.focus();
		getSelection().selectAllChildren(document.querySelectorAll("tbody tr")[1].querySelector(".text")); return true })()`)
	selected := eval[string](p, `getSelection().toString()`)
	require.NotEmpty(b, selected)
	_, charge := b.book()
	b.park(charge, "one more")
	p.until(fmt.Sprintf(`document.querySelectorAll("tbody tr").length === %d`, rows+1))
	p.says("one more")
	require.True(b, eval[bool](p, `document.activeElement === window.same && same.isConnected`), "the focus stays")
	require.Equal(b, selected, eval[string](p, `getSelection().toString()`), "and the selection")
	require.Contains(b, eval[string](p, `document.querySelector("#live [role=status]").textContent`), fmt.Sprint(rows+1), "and a screen reader is told")

	b.exec(`UPDATE console_sessions SET expires_at = clock_timestamp()`)
	p.until(`location.pathname.endsWith("/sign-in")`) // a session that is over asks by itself
}

// bulk starts a run, leaves it, and comes back.
func bulk(b *bed) {
	const effects = 150
	var all []domain.EffectID
	for range effects {
		_, charge := b.book()
		b.park(charge, "refused "+evil)
		all = append(all, charge)
	}
	p := b.tab()
	p.signIn(b.operator)
	p.open("/effects?stuck=1&kind=charge&status=parked")
	p.do(chromedp.Click(chromedp.CSS(`#live a[href*="/runs/new"]`)))
	p.until(`document.title.startsWith("New bulk run") && document.querySelector(".filter button")`)
	p.do(chromedp.Click(chromedp.CSS(".filter button")))
	p.says(fmt.Sprintf("%d would be done, 0 refused", effects))
	require.Zero(b, b.audits(), "a dry run changes nothing")
	p.do(chromedp.SendKeys(chromedp.ID("reason"), "the network is back"), chromedp.Click(chromedp.CSS("button.main")))
	p.until(`document.title.startsWith("Replay run")`)
	p.until(`document.querySelector("#live [role=status]") && !/^0 %/.test(document.querySelector("#live [role=status]").textContent)`)
	at := eval[string](p, `location.href`)
	p.do(chromedp.Navigate("about:blank")) // the page is closed in the middle of it, or at its end
	p.do(chromedp.Navigate(at))
	p.says(fmt.Sprintf("Finished: %d done, 0 refused, 0 left of %d", effects, effects))
	p.shoot("run-finished")
	require.Equal(b, effects, b.audits())
	require.Equal(b, effects, scan[int](b, `SELECT count(DISTINCT effect_id) FROM operator_actions WHERE effect_id = ANY($1)`, all))
}
