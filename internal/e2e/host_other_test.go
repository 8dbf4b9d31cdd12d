//go:build !linux

package e2e_test

import (
	"os/exec"
	"testing"
)

// underHost does nothing: only the random part of the program's identity is its own.
func underHost(t *testing.T, cmd *exec.Cmd, host string) {
	t.Helper()
	t.Logf("no namespaces here: %s runs under this machine's name, not as %s", cmd.Path, host)
}

func hostsCanBeNamed() bool { return false }

func becomeAnotherHost() {}
