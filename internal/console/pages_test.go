package console_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestBrowser is every test that needs one: a Chromium that they share, each in a tab with cookies of its own.
func TestBrowser(t *testing.T) {
	t.Parallel()
	chromium.start()
	t.Cleanup(chromium.stop) // after the parallel ones
	require.NoError(t, chromium.err)
	for name, test := range map[string]func(*bed){
		"pages look as they should":            look,
		"an act can be done by keyboard alone": byKeyboard,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(setup(t))
		})
	}
}

func look(b *bed) {
	b.outage()
	p := b.tab()
	p.open("/")
	p.shoot("signin")
	p.signIn(b.operator)
	for name, at := range map[string]string{"overview": "/", "list": "/effects?stuck=1"} {
		p.open(at)
		p.looks(1280, "light")
		p.shoot(name + "-light")
		p.looks(1280, "dark")
		p.shoot(name + "-dark")
		p.looks(360, "light")
		p.shoot(name + "-360")
	}
}
