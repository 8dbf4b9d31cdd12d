package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/pgserver/child"
)

const (
	readyWithin = 30 * time.Second
	stopWithin  = 30 * time.Second
)

// service is a binary that runs for long. It can be killed and started again at the same address, as a service manager
// would. Whatever still runs when the test ends is asked to stop, and must exit 0.
type service struct {
	bed     *bed
	name    string
	path    string
	args    []string
	env     []string
	address string // of the API, or else of health and metrics
	metrics string // where its metrics are, if anywhere
	http    *http.Client
	host    string // the name of the machine that it believes to run on; empty: this one's

	mu     sync.Mutex // a proxy may kill while the test looks
	latest *child.Process
	runs   int
}

// service sets up a binary without starting it.
func (b *bed) service(binary string, env ...string) *service {
	b.Helper()
	s := &service{bed: b, name: binary, path: binaries.path(b.T, binary), args: []string{"run"}, address: freeAddress(b.T), http: newHTTP(b.T)}
	s.env = append(append([]string{}, b.env...), "METRICS_ADDR="+s.address)
	s.metrics = s.address
	if binary == "api" {
		s.metrics = ""
		s.args = []string{"serve"}
		s.env = append(s.env, "HTTP_ADDR="+s.address, "METRICS_ADDR=")
	}
	s.env = append(s.env, env...)
	b.Cleanup(s.end)
	return s
}

// start starts a binary and waits until it is ready.
func (b *bed) start(binary string, env ...string) *service {
	b.Helper()
	s := b.service(binary, env...)
	s.Start()
	s.AwaitReady()
	return s
}

// startOn starts a binary under another host name and waits until it is ready.
func (b *bed) startOn(host, binary string, env ...string) *service {
	b.Helper()
	s := b.service(binary, env...)
	s.host = host
	s.Start()
	s.AwaitReady()
	return s
}

// Start starts the binary without waiting for it.
func (s *service) Start() {
	s.bed.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.runs++
	log, err := os.Create(s.log(s.runs))
	require.NoError(s.bed, err)
	defer func() { require.NoError(s.bed, log.Close()) }() // the process has a descriptor of its own
	cmd := exec.CommandContext(context.WithoutCancel(s.bed.Context()), s.path, s.args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = s.env, log, log
	if s.host != "" {
		underHost(s.bed.T, cmd, s.host)
	}
	s.latest, err = child.Start(cmd, syscall.SIGKILL)
	require.NoError(s.bed, err)
}

// AwaitReady waits until the binary says that it can do its work.
func (s *service) AwaitReady() {
	s.bed.Helper()
	eventually(s.bed.T, readyWithin, s.name+" is ready", func() bool {
		require.True(s.bed, s.running(), "%s ended instead of becoming ready", s.name)
		return s.ready() == http.StatusOK
	})
}

// ready is what /readyz answers; 0 if nothing does.
func (s *service) ready() int {
	s.bed.Helper()
	request, err := http.NewRequestWithContext(s.bed.Context(), http.MethodGet, "http://"+s.address+"/readyz", http.NoBody)
	require.NoError(s.bed, err)
	response, err := s.http.Do(request)
	if err != nil {
		return 0
	}
	require.NoError(s.bed, response.Body.Close())
	return response.StatusCode
}

// Kill ends the process as a crash would, and returns when it is gone.
func (s *service) Kill() error {
	p := s.process()
	if err := p.SignalGroup(syscall.SIGKILL); err != nil {
		return err
	}
	<-p.Done()
	return nil
}

// Stop asks the process to finish, and asserts that it does so in order and leaves no process behind.
func (s *service) Stop() {
	s.bed.Helper()
	require.NoError(s.bed, s.stop())
}

func (s *service) stop() error {
	p := s.process()
	if err := p.Stop(syscall.SIGTERM, stopWithin); err != nil {
		return err
	}
	if err := p.Err(); err != nil {
		return fmt.Errorf("after SIGTERM: %w", err)
	}
	if err := syscall.Kill(-p.PID(), 0); !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("its process group still exists (%w)", err)
	}
	return nil
}

func (s *service) process() *child.Process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.latest
}

func (s *service) running() bool {
	p := s.process()
	if p == nil {
		return false
	}
	select {
	case <-p.Done():
		return false
	default:
		return true
	}
}

// end is the cleanup. Of a failed test it shows what the binary had to say.
func (s *service) end() {
	if s.running() {
		if err := s.stop(); err != nil {
			s.bed.Errorf("%s: %v", s.name, err)
		}
	}
	if !s.bed.Failed() {
		return
	}
	for n := max(1, s.runs-2); n <= s.runs; n++ {
		s.bed.Logf("%s at %s, run %d:\n%s", s.name, s.address, n, tail(s.bed.T, s.log(n)))
	}
}

func (s *service) log(run int) string {
	return filepath.Join(s.bed.dir, fmt.Sprintf("%s-%s-%d.log", s.name, s.address, run))
}

// tail is the end of a log.
func tail(t *testing.T, file string) string {
	t.Helper()
	const lines = 60
	all := strings.Split(strings.TrimSpace(read(t, file)), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
