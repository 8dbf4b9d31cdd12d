package console_test

import (
	"fmt"

	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"
)

// tabTo presses the tabulator until an element has the focus, as somebody without a mouse does, and sees where it is all the way.
func (t *tab) tabTo(selector string) {
	t.Helper()
	for range 80 {
		t.keys(kb.Tab)
		at := eval[[]bool](t, fmt.Sprintf(`(() => { const e = document.activeElement; const box = e.getBoundingClientRect();
			return [e.matches(%q), e === document.body || e.matches(":focus-visible") && getComputedStyle(e).outlineStyle !== "none" && box.width > 0] })()`, selector))
		require.True(t, at[1], "the focus cannot be seen on the way to %s", selector)
		if at[0] {
			return
		}
	}
	require.Fail(t, "the tabulator does not lead to "+selector)
}

// follow goes to a link or button, and presses it.
func (t *tab) follow(selector string) {
	t.Helper()
	t.tabTo(selector)
	t.keys(kb.Enter)
}

// choose goes to a list and down in it. Typed letters would do as well, but for a machine so busy that the list takes each for a new word.
func (t *tab) choose(selector, value string) {
	t.Helper()
	t.tabTo(selector)
	for range 20 {
		if eval[string](t, `document.activeElement.value`) == value {
			return
		}
		t.keys(kb.ArrowDown)
	}
	require.Fail(t, value+" is not in "+selector)
}

// byKeyboard is a whole act without a mouse: sign in, filter, look, preview, replay, audit.
func byKeyboard(b *bed) {
	charge := b.outage()
	p := b.tab()
	p.open("/")
	p.until(`document.activeElement.id === "token"`)
	p.keys(b.operator.Reveal() + kb.Enter)
	p.until(`document.title.startsWith("Overview")`)
	p.keys(kb.Tab)
	require.True(b, eval[bool](p, `document.activeElement.matches(".skip")`), "the first thing is to skip what is on every page")
	p.keys(kb.Enter)
	p.until(`location.hash === "#main"`)
	p.keys("/")
	p.until(`document.activeElement.id === "find"`) // a slash goes to the search
	p.keys("/")
	p.until(`document.activeElement.value.endsWith("/")`) // and is a letter there

	p.follow(`nav a[href="/console/effects?stuck=1"]`)
	p.until(`document.title.startsWith("Stuck")`)
	p.choose("#kind", "charge")
	p.choose("#status", "parked")
	p.follow(".filter button")
	p.until(`location.search.includes("status=parked") && location.search.includes("kind=charge")`)
	p.until(`document.querySelectorAll("tbody tr").length === 1`)
	p.follow(fmt.Sprintf(`[id="e-%s"] a`, charge))
	p.until(`document.title.startsWith("Charge")`)
	p.follow("#act-replay a")
	p.until(`document.title.startsWith("Replay?")`)
	require.Zero(b, b.audits(), "a preview changes nothing")
	p.tabTo("#reason")
	p.keys("the network is back")
	p.follow("form.stack button.main")
	p.until(`document.querySelector(".said")`)
	require.Equal(b, "pending", scan[string](b, `SELECT status FROM outbox WHERE id = $1`, charge))
	require.Equal(b, "Olga: the network is back", scan[string](b, `SELECT actor || ': ' || reason FROM operator_actions`), "one row")
	p.follow(`nav a[href="/console/audit"]`)
	p.says("the network is back")
}
