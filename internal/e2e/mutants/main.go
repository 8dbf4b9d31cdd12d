// Command mutants plants known bugs, one at a time, in a copy of the working tree, and checks that the test which is
// there for each kills it, by the assertion that is there for it and not by a time-out. It exits 0 only if every patch
// applies, compiles and is killed.
//
// With --simulate N the simulation (internal/simulate) has to find each by itself instead, within N seeds. It exits 0 if
// every patch applies and compiles and at least ten are found. Names of mutants as arguments pick some of them.
//
// A patch begins with three lines: what is broken, which test must fail (package and name), and a text of the assertion
// that must be in its output.
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	patches   = "internal/e2e/mutants/patches"
	mustFound = 10 // so many the simulation finds alone
)

func main() {
	seeds := flag.Int("simulate", 0, "let the simulation alone find each within so many seeds")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, *seeds, flag.Args())
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants: "+err.Error())
		os.Exit(1)
	}
}

func run(ctx context.Context, seeds int, names []string) error {
	mutants, err := readAll(names)
	if err != nil {
		return err
	}
	tree, err := copyTree(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(tree) }()
	judge, good, bad, least := kill, "killed", "SURVIVED", len(mutants)
	if seeds > 0 {
		judge, good, bad, least = find(seeds), "found", "not found", min(mustFound, len(mutants))
	}
	done, broken := 0, 0
	for _, m := range mutants {
		start := time.Now()
		says, ok, err := try(ctx, tree, m, judge)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			broken++
			fmt.Printf("BROKEN     %-30s %s: %v\n", m.name, m.bug, err)
		case ok:
			done++
			fmt.Printf("%-10s %-30s %s %s (%.0f s)\n", good, m.name, m.bug, says, time.Since(start).Seconds())
		default:
			fmt.Printf("%-10s %-30s %s: %s (%.0f s)\n", bad, m.name, m.bug, says, time.Since(start).Seconds())
		}
	}
	fmt.Printf("mutants: %d of %d %s\n", done, len(mutants), good)
	switch {
	case broken > 0:
		return fmt.Errorf("%d cannot be planted", broken)
	case done < least:
		return fmt.Errorf("%d %s, and at least %d must be", done, good, least)
	}
	return nil
}

func readAll(names []string) ([]mutant, error) {
	files, err := filepath.Glob(filepath.Join(patches, "*.patch"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("no patches in %s: run from the repository's root", patches)
	}
	var mutants []mutant
	for _, file := range files {
		m, err := read(file)
		if err != nil {
			return nil, err
		}
		if len(names) == 0 || slices.Contains(names, m.name) {
			mutants = append(mutants, m)
		}
	}
	if len(names) > 0 && len(mutants) != len(names) {
		return nil, fmt.Errorf("of %s only %d are there", strings.Join(names, ", "), len(mutants))
	}
	return mutants, nil
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

// judgement says what became of a mutant that is planted in the tree, and whether that is what is wanted. An error says that
// nothing is known.
type judgement func(ctx context.Context, tree string, m mutant) (says string, ok bool, err error)

// try plants a mutant, judges it and takes it out again.
func try(ctx context.Context, tree string, m mutant, judge judgement) (says string, ok bool, err error) {
	restore, err := m.plant(tree)
	defer func() { _ = restore() }()
	if err != nil {
		return "", false, fmt.Errorf("the patch does not apply: %w", err)
	}
	return judge(ctx, tree, m)
}

// kill runs the mutant's test, which must fail and say why.
func kill(ctx context.Context, tree string, m mutant) (says string, ok bool, err error) {
	out, err := in(ctx, tree, "go", "test", "-vet=off", "-count=1", "-timeout=3m", "-run", "^"+strings.ReplaceAll(m.test, "/", "$/^")+"$", m.pkg)
	switch {
	case err == nil:
		return m.test + " passes", false, nil
	case strings.Contains(out, "[build failed]"):
		return "", false, fmt.Errorf("it does not compile: %s", out)
	case strings.Contains(out, "panic: test timed out"):
		return m.test + " ends by its time-out, not by an assertion", false, nil
	case !strings.Contains(out, m.assertion):
		return fmt.Sprintf("%s fails without saying %q:\n%s", m.test, m.assertion, out), false, nil
	default:
		return fmt.Sprintf("by %s: %s", m.test, m.assertion), true, nil
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
