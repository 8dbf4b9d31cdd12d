package child

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// Process is a started child. Its methods may be called from any goroutine.
type Process struct {
	cmd  *exec.Cmd
	done chan struct{}
	err  error // set before done is closed
}

// Start starts cmd, whose SysProcAttr may already name a user to run as. The kernel sends the child onParentDeath
// when this process dies.
//
// The goroutine that forks stays locked to its thread until the child has ended: the kernel counts the death of the
// forking *thread* as the parent's, and an idle Go thread may be retired at any time.
func Start(cmd *exec.Cmd, onParentDeath syscall.Signal) (*Process, error) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
	dieWithParent(cmd.SysProcAttr, onParentDeath)

	p := &Process{cmd: cmd, done: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if err := cmd.Start(); err != nil {
			started <- err
			return
		}
		started <- nil
		p.err = cmd.Wait()
		close(p.done)
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	return p, nil
}

// PID is the child's process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done is closed when the child has ended and been waited for.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err waits for the end of the child and says how it ended: nil for exit status 0, else an *exec.ExitError.
func (p *Process) Err() error {
	<-p.done
	return p.err
}

// ExitCode waits for the end of the child and returns its exit status as a shell would: 128 + n after signal n.
func (p *Process) ExitCode() int {
	<-p.done
	state := p.cmd.ProcessState
	if state == nil {
		return 1
	}
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return state.ExitCode()
}

// Signal sends a signal to the child alone. A child that has ended is not an error.
func (p *Process) Signal(signal os.Signal) error {
	if err := p.cmd.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("signal process %d: %w", p.PID(), err)
	}
	return nil
}

// SignalGroup sends a signal to the child and to everything in its process group, such as the programs it started.
func (p *Process) SignalGroup(signal syscall.Signal) error {
	select {
	case <-p.done: // the group's number may already belong to somebody else
		return nil
	default:
	}
	if err := syscall.Kill(-p.PID(), signal); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("signal process group %d: %w", p.PID(), err)
	}
	return nil
}

// Stop sends signal and waits; a child still there after grace is killed with its group. It returns once the child
// has been waited for, with an error only when it had to be killed.
func (p *Process) Stop(signal os.Signal, grace time.Duration) error {
	if err := p.Signal(signal); err != nil {
		return err
	}
	if p.ended(grace) {
		return nil
	}
	if err := p.SignalGroup(syscall.SIGKILL); err != nil {
		return err
	}
	<-p.done
	return fmt.Errorf("process %d (%s) ignored %v for %s and was killed", p.PID(), p.cmd.Path, signal, grace)
}

func (p *Process) ended(within time.Duration) bool {
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case <-p.done:
		return true
	case <-timer.C:
		return false
	}
}
