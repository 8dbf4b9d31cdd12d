// Package testbrowser starts a headless Chromium for tests. It fails where there is none, and skips nothing.
package testbrowser

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"

	"github.com/chromedp/chromedp"
)

// Browser is one running Chromium with a home of its own.
type Browser struct {
	ctx  context.Context //nolint:containedctx // chromedp's handle on the browser is a context
	end  context.CancelFunc
	home string
}

// Start starts a browser. It goes on until Stop.
func Start() (*Browser, error) {
	file, err := exec.LookPath("chromium")
	if err != nil {
		if file, err = exec.LookPath("google-chrome"); err != nil {
			return nil, errors.New("these tests need Chromium: apt-get install chromium")
		}
	}
	home, err := os.MkdirTemp("", "holdfast-chromium-")
	if err != nil {
		return nil, fmt.Errorf("make a home for the browser: %w", err)
	}
	allocator, end := chromedp.NewExecAllocator(context.Background(),
		chromedp.ExecPath(file), chromedp.Headless, chromedp.NoSandbox, chromedp.DisableGPU, chromedp.NoFirstRun, chromedp.NoDefaultBrowserCheck,
		chromedp.UserDataDir(home),
		chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true),
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-default-apps", true), chromedp.Flag("disable-extensions", true),
		chromedp.Flag("disable-dev-shm-usage", true), chromedp.Flag("mute-audio", true), chromedp.Flag("hide-scrollbars", true),
	)
	ctx, cancel := chromedp.NewContext(allocator)
	b := &Browser{ctx: ctx, home: home, end: func() { cancel(); end() }}
	if err := chromedp.Do(ctx); err != nil {
		b.Stop()
		return nil, fmt.Errorf("start the browser: %w", err)
	}
	return b, nil
}

// Tab opens a tab with cookies of its own; it is closed, and what runs in it ends, when the returned function is called.
func (b *Browser) Tab() (context.Context, context.CancelFunc) {
	return chromedp.NewContext(b.ctx, chromedp.WithNewBrowserContext())
}

// Stop ends the browser and removes its home.
func (b *Browser) Stop() {
	_ = chromedp.Cancel(b.ctx)
	b.end()
	_ = os.RemoveAll(b.home)
}
