package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

const buildGrace = 5 * time.Second

// programs lists what the stack runs and where its source is.
func programs() map[string]string {
	return map[string]string{
		"api": "./cmd/api", "worker": "./cmd/worker", "reconciler": "./cmd/reconciler",
		"stripesim": "./payments/stripesim/cmd/stripesim",
	}
}

// build makes the binaries, or checks those that were given.
func build(ctx context.Context, out *printer, opts *stackOptions) error {
	if opts.bin != "" {
		for name := range programs() {
			if _, err := os.Stat(opts.binary(name)); err != nil {
				return &usageError{reason: fmt.Sprintf("--bin: %v", err)}
			}
		}
		return nil
	}
	goTool, err := exec.LookPath("go")
	if err != nil {
		return &usageError{reason: "the binaries are built with the go command, which is not in PATH: install Go, or name built binaries with --bin"}
	}
	opts.bin = filepath.Join(opts.root, stateDir, "bin")
	if err := makeWritable(opts.bin); err != nil {
		return err
	}
	note := "building the binaries"
	if _, err := os.Stat(opts.binary("api")); err != nil {
		note += "; the first time takes a few minutes"
	}
	out.progress("%s", note)
	args := []string{"build", "-o", opts.bin + string(filepath.Separator)}
	for _, source := range programs() {
		args = append(args, source)
	}
	cmd := exec.CommandContext(ctx, goTool, args...) //nolint:gosec // the go command
	cmd.Dir = opts.root
	// Its compilers hold on to its output, and end with it only if it is asked to end.
	cmd.Cancel, cmd.WaitDelay = func() error { return cmd.Process.Signal(os.Interrupt) }, buildGrace
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build the binaries: %w\n%s", err, strings.TrimSpace(string(output)))
	}
	return nil
}
