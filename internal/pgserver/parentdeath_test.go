package pgserver_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"holdfast/internal/pgserver"
)

// parentEnv turns the test binary into a program that starts a server and waits to be killed.
const parentEnv = "HOLDFAST_PGSERVER_TEST_PARENT"

func TestMain(m *testing.M) {
	if _, ok := os.LookupEnv(parentEnv); ok {
		startAndWaitToBeKilled()
	}
	goleak.VerifyTestMain(m)
}

func startAndWaitToBeKilled() {
	server, err := pgserver.Start(contextForParent(), pgserver.Options{})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(server.PID(), filepath.Dir(server.LogFile()))
	<-server.Done()
	os.Exit(0)
}

func TestServerDiesWithItsKilledParent(t *testing.T) {
	t.Parallel()
	parent := exec.CommandContext(t.Context(), os.Args[0])
	parent.Env = append(os.Environ(), parentEnv+"=1")
	output, err := parent.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, parent.Start())
	line, err := bufio.NewReader(output).ReadString('\n')
	require.NoError(t, err)
	var pid int
	var home string
	_, err = fmt.Sscan(line, &pid, &home)
	require.NoError(t, err, "the parent said: %s", line)
	// A killed process cannot remove its directory; any later start sweeps it.
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(home)) })
	require.NoError(t, syscall.Kill(pid, 0), "the server runs")

	require.NoError(t, parent.Process.Kill())
	require.Error(t, parent.Wait())

	require.Eventually(t, func() bool { return gone(pid) }, 20*time.Second, 20*time.Millisecond)
}

// gone reports the end of a process. An orphan that nobody waits for (a container without an init) stays a zombie.
func gone(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return syscall.Kill(pid, 0) != nil
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return strings.HasPrefix(rest, "Z")
}
