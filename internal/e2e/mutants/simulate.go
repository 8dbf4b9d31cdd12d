package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// verdict is a line of the simulation's JSON: a seed that fails, or the summary, which has no violations in it.
type verdict struct {
	Seed       uint64 `json:"seed"`
	Violations json.RawMessage
}

// find makes the judgement that runs the simulation alone, from the first seed on until one fails.
func find(seeds int) judgement {
	return func(ctx context.Context, tree string, _ mutant) (says string, ok bool, err error) {
		binary := filepath.Join(tree, "simulate.bin")
		if out, err := in(ctx, tree, "go", "build", "-o", binary, "./internal/simulate/cmd/simulate"); err != nil {
			return "", false, fmt.Errorf("it does not compile: %s", out)
		}
		defer func() { _ = os.Remove(binary) }()
		out, err := in(ctx, tree, binary, "--seeds", strconv.Itoa(seeds), "--stop-at-first", "--json", "--shrink", "0")
		if exit := (*exec.ExitError)(nil); err == nil {
			return fmt.Sprintf("no violation in %d seeds", seeds), false, nil
		} else if !errors.As(err, &exit) || exit.ExitCode() != 1 { // 1: a seed fails
			return "", false, fmt.Errorf("the simulation could not run: %w: %s", err, out)
		}
		return firstOf(out)
	}
}

// firstOf reads which seed the simulation found first, and what it violates.
func firstOf(out string) (says string, ok bool, err error) {
	for line := range strings.Lines(out) {
		var v verdict
		var violations []struct{ Invariant, Text string }
		if json.Unmarshal([]byte(line), &v) != nil || json.Unmarshal(v.Violations, &violations) != nil || len(violations) == 0 {
			continue
		}
		text, _, _ := strings.Cut(violations[0].Text, "\n")
		return fmt.Sprintf("by seed %d: %s: %s", v.Seed, violations[0].Invariant, text), true, nil
	}
	return "", false, fmt.Errorf("the simulation has failed, and names no violation: %s", out)
}
