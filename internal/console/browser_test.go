package console_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/internal/testbrowser"
	"holdfast/internal/testdb"
	"holdfast/internal/testsize"
)

func TestMain(m *testing.M) { testdb.Main(m) }

// chromium is the one browser of the package's tests.
var chromium *testbrowser.Browser

// shots is where the pictures of the pages go, as build output.
func shots() string {
	if dir, ok := os.LookupEnv("HOLDFAST_SCREENSHOTS"); ok && dir != "" {
		return dir
	}
	return filepath.Join("..", "..", "bin", "screenshots")
}

// tab is a tab of the browser with cookies of its own.
type tab struct {
	*bed
	ctx context.Context
}

func (b *bed) tab() *tab {
	b.Helper()
	ctx, cancel := chromium.Tab()
	ctx, stop := context.WithTimeout(ctx, 8*time.Minute)
	b.Cleanup(func() { stop(); cancel() })
	t := &tab{bed: b, ctx: ctx}
	t.do(chromedp.EmulateViewport(1280, 900))
	return t
}

func (t *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	require.NoError(t, chromedp.Do(t.ctx, steps...))
}

// open goes to a page of the console.
func (t *tab) open(at string) {
	t.Helper()
	t.do(chromedp.Navigate(t.url + "/console" + at))
}

// eval runs JavaScript in the page, as the test's own tools may and the page's content may not.
func eval[T any](t *tab, script string) T {
	t.Helper()
	v, err := chromedp.Run(t.ctx, chromedp.Evaluate[T](script))
	require.NoError(t, err, script)
	return v
}

// until waits for a condition in a page that has loaded whole.
func (t *tab) until(script string) {
	t.Helper()
	deadline := time.Now().Add(3 * time.Minute)
	for {
		ok, err := chromedp.Run(t.ctx, chromedp.Evaluate[bool](`document.readyState === "complete" && !!(`+script+")"))
		if err == nil && ok {
			return
		}
		if time.Now().After(deadline) {
			text, _ := chromedp.Run(t.ctx, chromedp.Evaluate[string](`location.href + "\n" + document.body.innerText`))
			require.FailNow(t, "not in time", "%s (%v)\n%s", script, err, text)
		}
		select {
		case <-time.After(100 * time.Millisecond): // a look lays the page out
		case <-t.ctx.Done():
			require.NoError(t, t.ctx.Err())
		}
	}
}

// says waits for a text on the page.
func (t *tab) says(text string) {
	t.Helper()
	t.until(fmt.Sprintf(`document.body && document.body.innerText.includes(%q)`, text))
}

// keys types as a person does.
func (t *tab) keys(text string) {
	t.Helper()
	t.do(chromedp.KeyEvent(text))
}

func (t *tab) signIn(token domain.Secret) {
	t.Helper()
	t.open("/")
	t.do(chromedp.SendKeys(chromedp.ID("token"), token.Reveal()), chromedp.Submit(chromedp.ID("token")))
	t.until(`document.title.startsWith("Overview")`)
}

// looks sets width and colour scheme.
func (t *tab) looks(width int64, scheme string) {
	t.Helper()
	t.do(chromedp.EmulateViewport(width, 900), media(scheme))
}

func media(scheme string) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
		})
		return err
	})
}

// pictured tells whether each page is pictured in the dark and on a telephone, too: drawing takes longer than all that is asserted there.
func pictured() bool {
	_, asked := os.LookupEnv("HOLDFAST_SCREENSHOTS")
	return asked || testsize.Full()
}

// shoot writes a picture of the whole page.
func (t *tab) shoot(name string) {
	t.Helper()
	picture, err := chromedp.Run(t.ctx, chromedp.FullScreenshot(100))
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(shots(), 0o750))
	require.NoError(t, os.WriteFile(filepath.Join(shots(), name+".png"), picture, 0o600))
}
