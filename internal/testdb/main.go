package testdb

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// Main runs a package's tests, stops what they shared, fails if a goroutine is left, and exits. It is all of a
// TestMain; opts add to what the leak check ignores.
func Main(m *testing.M, opts ...goleak.Option) {
	goleak.VerifyTestMain(runner{m}, opts...)
}

// runner stops the shared server between the tests and the leak check, which would see it as a leak.
type runner struct{ tests *testing.M }

func (r runner) Run() int {
	shared.mu.Lock()
	shared.inMain = true
	shared.mu.Unlock()
	code := r.tests.Run()
	if err := shared.stop(); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "testdb:", err)
		code = max(code, 1)
	}
	return code
}
