package e2e_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"holdfast/internal/testbrowser"
)

// page is the operator's console in a real browser, served by the deployment's own api.
type page struct {
	*testing.T

	ctx context.Context
	url string
}

// console signs an operator in.
func (x *troubles) console() *page {
	x.Helper()
	browser, err := testbrowser.Start()
	require.NoError(x, err)
	x.Cleanup(browser.Stop)
	ctx, closeTab := browser.Tab()
	x.Cleanup(closeTab)
	ctx, stop := context.WithTimeout(ctx, 10*time.Minute)
	x.Cleanup(stop)
	p := &page{T: x.T, ctx: ctx, url: x.desk.url + "/console"}
	p.do(chromedp.EmulateViewport(1280, 900), chromedp.Navigate(p.url+"/"),
		chromedp.SendKeys(chromedp.ID("token"), x.desk.token), chromedp.Submit(chromedp.ID("token")))
	p.until(`document.title.startsWith("Overview")`)
	return p
}

func (p *page) do(steps ...chromedp.Action[chromedp.Void]) {
	p.Helper()
	require.NoError(p, chromedp.Do(p.ctx, steps...))
}

// until waits for a condition in a page that has loaded whole.
func (p *page) until(script string) {
	p.Helper()
	eventually(p.T, soon, script, func() bool {
		ok, err := chromedp.Run(p.ctx, chromedp.Evaluate[bool](`document.readyState === "complete" && !!(`+script+")"))
		return err == nil && ok
	})
}

// click follows what a selector finds, to the page whose title begins so.
func (p *page) click(selector, title string) {
	p.Helper()
	p.until(fmt.Sprintf(`document.querySelector(%q)`, selector))
	p.do(chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`void document.querySelector(%q).click()`, selector)))
	p.until(fmt.Sprintf(`document.title.startsWith(%q)`, title))
}

func (p *page) says(text string) {
	p.Helper()
	p.until(fmt.Sprintf(`document.body.innerText.includes(%q)`, text))
}

// shoot keeps a picture of the page, as build output.
func (p *page) shoot(name string) {
	p.Helper()
	picture, err := chromedp.Run(p.ctx, chromedp.FullScreenshot(100))
	require.NoError(p, err)
	dir := filepath.Join("..", "..", "bin", "screenshots")
	require.NoError(p, os.MkdirAll(dir, 0o750))
	require.NoError(p, os.WriteFile(filepath.Join(dir, name+".png"), picture, 0o600))
}

// find filters the list by kind and status, finds the effect there with its reason, and opens it.
func (p *page) find(row stuckRow) {
	p.Helper()
	p.do(chromedp.Navigate(fmt.Sprintf("%s/effects?stuck=1&kind=%s&status=%s", p.url, row.Kind, row.Status)))
	title := map[string]string{"charge": "Charge", "publish": "Event"}[row.Kind]
	p.click(fmt.Sprintf(`[id="e-%s"] a`, row.ID), title)
}

// preview asks what a replay would do, and leaves its page open.
func (p *page) preview(row stuckRow, says string) {
	p.Helper()
	p.find(row)
	p.click("#act-replay a", "Replay?")
	p.says("What would happen")
	p.says(says)
}

// replay does it, with a reason.
func (p *page) replay(row stuckRow, says, reason string) {
	p.Helper()
	p.preview(row, says)
	p.do(chromedp.SendKeys(chromedp.ID("reason"), reason))
	p.do(chromedp.Evaluate[chromedp.Void](`void document.querySelector("form.stack button.main").click()`))
	p.until(`document.querySelector(".said")`)
}

// audited looks for what was done in the audit.
func (p *page) audited(reason string) {
	p.Helper()
	p.click(`nav a[href="/console/audit"]`, "Audit")
	p.says(reason)
}
