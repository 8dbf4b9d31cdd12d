package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// readLogs counts pgbench's transactions and, apart, those after its connections were warm: pgbench opens them for each
// run, and the first transaction of each compiles the function and plans it, which a service does once.
func readLogs(files []string) (all, steady int, took time.Duration, err error) {
	var ends []time.Time
	var began time.Time
	for _, file := range files {
		f, err := os.Open(filepath.Clean(file))
		if err != nil {
			return 0, 0, 0, err
		}
		lines := bufio.NewScanner(f)
		for lines.Scan() {
			var client, n, micros, script, s, us int64
			if _, err := fmt.Sscanf(lines.Text(), "%d %d %d %d %d %d", &client, &n, &micros, &script, &s, &us); err != nil {
				return 0, 0, 0, errors.Join(fmt.Errorf("pgbench logged %q: %w", lines.Text(), err), f.Close())
			}
			end := time.Unix(s, us*1000)
			if start := end.Add(-time.Duration(micros) * time.Microsecond); began.IsZero() || start.Before(began) {
				began = start
			}
			ends = append(ends, end)
		}
		if err := errors.Join(lines.Err(), f.Close(), os.Remove(file)); err != nil {
			return 0, 0, 0, err
		}
	}
	warm, last := began.Add(warmFor), began
	for _, end := range ends {
		if end.After(warm) {
			steady++
		}
		if end.After(last) {
			last = end
		}
	}
	if steady == 0 {
		return 0, 0, 0, errors.New("pgbench did nothing")
	}
	return len(ends), steady, last.Sub(warm), nil
}
