package main

import (
	"fmt"
	"strings"
	"time"

	"holdfast/internal/cli"
	"holdfast/internal/operator"
)

// progress tells how far a run has come: on a terminal in one line that changes, elsewhere in a line now and then.
type progress struct {
	io       cli.IO
	terminal bool
	started  time.Time
	begun    int // effects that were done with before
	last     time.Time
}

const between = 5 * time.Second // lines, where there is no terminal

func newProgress(io cli.IO, run operator.Run) *progress {
	now := time.Now()
	return &progress{io: io, terminal: cli.IsTerminal(io.Err), started: now, begun: run.Total - run.Left, last: now}
}

func (p *progress) show(run operator.Run) {
	now := time.Now()
	if !p.terminal && run.Left > 0 && now.Sub(p.last) < between {
		return
	}
	p.last = now
	line := told(run, p.begun, now.Sub(p.started))
	if !p.terminal {
		_, _ = fmt.Fprintln(p.io.Err, line)
		return
	}
	_, _ = fmt.Fprintf(p.io.Err, "\r\x1b[K%s %s", bar(run), line)
}

func (p *progress) end() {
	if p.terminal {
		_, _ = fmt.Fprintln(p.io.Err)
	}
}

// told is done and total, the rate, and the time that is left at that rate.
func told(run operator.Run, begun int, took time.Duration) string {
	through := run.Total - run.Left
	rate := float64(through-begun) / max(took.Seconds(), 0.001)
	line := fmt.Sprintf("%d/%d, %d refused, %.0f/s", through, run.Total, run.Refused, rate)
	if run.Failed > 0 {
		line += fmt.Sprintf(", %d failed", run.Failed)
	}
	if run.Left > 0 && rate > 0 {
		line += ", " + cli.Age(time.Duration(float64(run.Left)/rate*float64(time.Second))) + " left"
	}
	return line
}

func bar(run operator.Run) string {
	const wide = 20
	full := 0
	if run.Total > 0 {
		full = wide * (run.Total - run.Left) / run.Total
	}
	return "[" + strings.Repeat("#", full) + strings.Repeat(" ", wide-full) + "]"
}
