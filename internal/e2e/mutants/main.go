// Command mutants plants known bugs, one at a time, in a copy of the working tree, and checks that the test which is
// there for each kills it, by the assertion that is there for it and not by a time-out. It exits 0 only if every patch
// applies, compiles and is killed.
//
// A patch begins with three lines: what is broken, which test must fail (package and name), and a text of the assertion
// that must be in its output.
package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"time"
)

const patches = "internal/e2e/mutants/patches"

type mutant struct {
	name      string
	file      string
	bug       string
	pkg, test string
	assertion string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants: "+err.Error())
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	files, err := filepath.Glob(filepath.Join(patches, "*.patch"))
	if err != nil || len(files) == 0 {
		return fmt.Errorf("no patches in %s: run from the repository's root", patches)
	}
	tree, err := copyTree(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(tree) }()
	killed := 0
	for _, file := range files {
		m, err := read(file)
		if err != nil {
			return err
		}
		start := time.Now()
		verdict := try(ctx, tree, m)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if verdict == "" {
			killed++
			fmt.Printf("killed    %-28s %s by %s (%.0f s)\n", m.name, m.bug, m.test, time.Since(start).Seconds())
			continue
		}
		fmt.Printf("SURVIVED  %-28s %s: %s\n", m.name, m.bug, verdict)
	}
	fmt.Printf("mutants: %d of %d killed\n", killed, len(files))
	if killed < len(files) {
		return fmt.Errorf("%d survived", len(files)-killed)
	}
	return nil
}

// copyTree copies what git tracks, and what it would track, as it stands in the working tree.
func copyTree(ctx context.Context) (string, error) {
	list, err := exec.CommandContext(ctx, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard").Output()
	if err != nil {
		return "", fmt.Errorf("list the working tree: %w", err)
	}
	tree, err := os.MkdirTemp("", "holdfast-mutants-")
	if err != nil {
		return "", err
	}
	for _, name := range strings.Split(strings.TrimRight(string(list), "\x00"), "\x00") {
		content, err := os.ReadFile(name) //nolint:gosec // git names it
		if os.IsNotExist(err) {
			continue // deleted and not committed yet
		}
		if err != nil {
			return "", err
		}
		target := filepath.Join(tree, name)
		if err := os.MkdirAll(filepath.Dir(target), 0o750); err != nil {
			return "", err
		}
		if err := os.WriteFile(target, content, 0o600); err != nil { //nolint:gosec // below a directory of our own
			return "", err
		}
	}
	return tree, nil
}

func read(file string) (mutant, error) {
	content, err := os.ReadFile(file) //nolint:gosec // found by Glob
	if err != nil {
		return mutant{}, err
	}
	path, err := filepath.Abs(file)
	if err != nil {
		return mutant{}, err
	}
	m := mutant{name: strings.TrimSuffix(filepath.Base(file), ".patch"), file: path}
	lines := strings.SplitN(string(content), "\n", 4)
	if len(lines) < 4 {
		return mutant{}, fmt.Errorf("%s: want three lines before the patch", file)
	}
	m.bug = strings.TrimPrefix(lines[0], "Bug: ")
	if n, err := fmt.Sscanf(lines[1], "Test: %s %s", &m.pkg, &m.test); n != 2 {
		return mutant{}, fmt.Errorf("%s: want \"Test: PACKAGE NAME\" in its second line: %w", file, err)
	}
	m.assertion = strings.TrimPrefix(lines[2], "Assertion: ")
	return m, nil
}

// try returns "" if the mutant is killed as it should be.
func try(ctx context.Context, tree string, m mutant) string {
	if out, err := in(ctx, tree, "patch", "-p1", "-s", "-i", m.file); err != nil {
		return "the patch does not apply: " + out
	}
	defer func() { _, _ = in(context.WithoutCancel(ctx), tree, "patch", "-p1", "-s", "-R", "-i", m.file) }()
	if out, err := in(ctx, tree, "go", "vet", "./domain", "./payments", m.pkg); err != nil {
		return "it does not compile: " + out
	}
	out, err := in(ctx, tree, "go", "test", "-count=1", "-timeout=3m", "-run", "^"+strings.ReplaceAll(m.test, "/", "$/^")+"$", m.pkg)
	switch {
	case err == nil:
		return m.test + " passes"
	case strings.Contains(out, "panic: test timed out"):
		return m.test + " ends by its time-out, not by an assertion"
	case !strings.Contains(out, m.assertion):
		return fmt.Sprintf("%s fails without saying %q:\n%s", m.test, m.assertion, out)
	default:
		return ""
	}
}

func in(ctx context.Context, dir, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...) //nolint:gosec // from this file and the patches
	cmd.Dir = dir
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}
