package e2e_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"holdfast/internal/testdb"
)

func TestMain(m *testing.M) {
	becomeAnotherHost()
	testdb.Main(m, goleak.Cleanup(func(code int) {
		if err := binaries.remove(); err != nil {
			_, _ = fmt.Fprintln(os.Stderr, "e2e:", err)
			code = max(code, 1)
		}
		os.Exit(code)
	}))
}

// binaries are built once for all tests of this process.
var binaries built

type built struct {
	once sync.Once
	dir  string
	err  error
}

// path builds the binaries, if that has not been done, and returns where one of them is.
func (b *built) path(t *testing.T, name string) string {
	t.Helper()
	b.once.Do(func() { b.dir, b.err = build() })
	require.NoError(t, b.err)
	return filepath.Join(b.dir, name)
}

func (b *built) remove() error {
	if b.dir == "" {
		return nil
	}
	return os.RemoveAll(b.dir)
}

// build makes the binaries without the race detector, which would slow what is killed here at random moments, and
// without symbols, which take most of the linking.
func build() (dir string, err error) {
	dir, err = os.MkdirTemp("", "holdfast-e2e-")
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", "build", "-ldflags=-s -w", "-o", dir+string(filepath.Separator),
		"./cmd/api", "./cmd/worker", "./cmd/reconciler")
	cmd.Dir = filepath.Join("..", "..")
	if output, err := cmd.CombinedOutput(); err != nil {
		return dir, fmt.Errorf("build the binaries: %w\n%s", err, output)
	}
	return dir, nil
}

// eventually waits until a condition holds, and fails the test if it does not within the time.
func eventually(t *testing.T, within time.Duration, what string, holds func() bool) {
	t.Helper()
	deadline := time.NewTimer(within)
	defer deadline.Stop()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for !holds() {
		select {
		case <-ticker.C:
		case <-deadline.C:
			require.FailNow(t, "not in time", "after %s still not: %s", within, what)
		}
	}
}
