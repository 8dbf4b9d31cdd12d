package e2e_test

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// hostEnv asks this test binary to take a host name and to become the program in its arguments.
const hostEnv = "HOLDFAST_E2E_HOST"

// underHost makes cmd run under another host name: in a namespace of its own, where this test binary sets the name and
// then becomes the program, so that the process id and the signals are the program's. Where the system forbids that, the
// program runs under this machine's name, and only the random part of its identity is its own.
func underHost(t *testing.T, cmd *exec.Cmd, host string) {
	t.Helper()
	if !hostsCanBeNamed() {
		t.Logf("no namespaces here: %s runs under this machine's name, not as %s", cmd.Path, host)
		return
	}
	asHost(cmd, host)
}

func asHost(cmd *exec.Cmd, host string) {
	cmd.Env = append(slices.Clone(cmd.Env), hostEnv+"="+host)
	cmd.Args = append([]string{os.Args[0], cmd.Path}, cmd.Args[1:]...)
	cmd.Path = "/proc/self/exe"
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUTS}
	if uid, gid := os.Geteuid(), os.Getegid(); uid != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER // in which it is root, and may name its host
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: uid, Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: gid, Size: 1}}
	}
}

// hostsCanBeNamed tries it once.
var hostsCanBeNamed = sync.OnceValue(func() bool {
	cmd := exec.Command("/bin/uname", "-n")
	asHost(cmd, "another")
	name, err := cmd.Output()
	return err == nil && strings.TrimSpace(string(name)) == "another"
})

// becomeAnotherHost is the first thing that this test binary does: nothing, unless underHost has started it.
func becomeAnotherHost() {
	host, asked := os.LookupEnv(hostEnv)
	if !asked {
		return
	}
	err := syscall.Sethostname([]byte(host))
	if err == nil {
		env := slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, hostEnv+"=") })
		err = syscall.Exec(os.Args[1], os.Args[1:], env)
	}
	_, _ = fmt.Fprintln(os.Stderr, "e2e: run as host", host+":", err)
	os.Exit(1)
}
