package child_test

import (
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"holdfast/internal/pgserver/child"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestChildEnds(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		script string
		code   int
	}{
		"well":        {"exit 0", 0},
		"with a code": {"exit 3", 3},
		"by a signal": {"kill -TERM $$", 143},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := child.Start(exec.CommandContext(t.Context(), "/bin/sh", "-c", test.script), syscall.SIGKILL)
			require.NoError(t, err)
			require.Equal(t, test.code, p.ExitCode())
			require.Equal(t, test.code == 0, p.Err() == nil)
			require.NoError(t, p.Signal(syscall.SIGTERM), "a signal that comes too late is no error")
			require.NoError(t, p.SignalGroup(syscall.SIGTERM))
		})
	}
}

func TestStopKillsAChildThatIgnoresIt(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", `trap "" TERM; echo ready; while :; do read line; done`)
	input, err := cmd.StdinPipe()
	require.NoError(t, err)
	output, err := cmd.StdoutPipe()
	require.NoError(t, err)
	p, err := child.Start(cmd, syscall.SIGKILL)
	require.NoError(t, err)
	t.Cleanup(func() { _ = input.Close() })
	_, err = output.Read(make([]byte, 1)) // the trap is set
	require.NoError(t, err)

	require.ErrorContains(t, p.Stop(syscall.SIGTERM, 50*time.Millisecond), "was killed")
	require.Equal(t, 137, p.ExitCode())
}

func TestMissingProgramIsNamed(t *testing.T) {
	t.Parallel()
	_, err := child.Start(exec.CommandContext(t.Context(), "/no/such/program"), syscall.SIGKILL)
	require.ErrorContains(t, err, "/no/such/program")
}
