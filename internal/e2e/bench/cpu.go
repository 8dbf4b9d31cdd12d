package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// spent is the processor time that the processes of a pick-up have used. It is what the machine's sharing changes least.
type spent struct{ postgres, worker, bench time.Duration }

// cpuTimes reads them where the system has /proc, and nothing elsewhere.
func cpuTimes(postmaster, worker int) spent {
	var s spent
	files, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is right
	for _, file := range files {
		p, ok := readStat(file)
		if !ok {
			continue
		}
		switch {
		case p.pid == postmaster:
			s.postgres += p.own + p.reaped
		case p.parent == postmaster:
			s.postgres += p.own
		case p.pid == worker:
			s.worker += p.own
		case p.pid == os.Getpid():
			s.bench += p.own
		}
	}
	return s
}

type procStat struct {
	pid, parent int
	own, reaped time.Duration
}

func readStat(file string) (procStat, bool) {
	text, err := os.ReadFile(filepath.Clean(file))
	if err != nil {
		return procStat{}, false // it has ended
	}
	var p procStat
	if _, err := fmt.Sscanf(string(text), "%d", &p.pid); err != nil {
		return procStat{}, false
	}
	// The name, in parentheses, may hold anything.
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	if len(fields) < 15 {
		return procStat{}, false
	}
	n := func(i int) int {
		v, _ := strconv.Atoi(fields[i]) // the kernel writes numbers
		return v
	}
	const tickMillis = 10 // USER_HZ is 100 on every Linux that Go runs on
	p.parent = n(1)
	p.own = time.Duration((n(11)+n(12))*tickMillis) * time.Millisecond
	p.reaped = time.Duration((n(13)+n(14))*tickMillis) * time.Millisecond
	return p, true
}
