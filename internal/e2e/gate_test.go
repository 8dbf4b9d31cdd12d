package e2e_test

import (
	"slices"
	"strings"
	"sync"

	"holdfast/payments/stripesim"
)

// gate holds requests to the provider on arrival, before anything is decided.
type gate struct {
	mu   sync.Mutex
	keys []string // parts of the keys that are held
	exit chan struct{}
}

func newGate() *gate { return &gate{exit: make(chan struct{})} }

// hold holds whatever arrives from now on under a key with this part.
func (g *gate) hold(key string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.keys = append(g.keys, key)
}

// open lets all go, now and later.
func (g *gate) open() { close(g.exit) }

func (g *gate) observe(entry stripesim.JournalEntry) {
	g.mu.Lock()
	held := slices.ContainsFunc(g.keys, func(key string) bool { return strings.Contains(entry.IdempotencyKey, key) })
	g.mu.Unlock()
	if held {
		<-g.exit
	}
}
