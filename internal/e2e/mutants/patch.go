package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// mutant is one planted bug, as its file says.
type mutant struct {
	name      string
	bug       string
	pkg, test string
	assertion string
	hunks     []hunk
}

// hunk is a piece of a file, and what the bug makes of it.
type hunk struct {
	file, old, planted string
}

func read(file string) (mutant, error) {
	content, err := os.ReadFile(file) //nolint:gosec // found by Glob
	if err != nil {
		return mutant{}, err
	}
	m := mutant{name: strings.TrimSuffix(filepath.Base(file), ".patch")}
	lines := strings.SplitN(string(content), "\n", 4)
	if len(lines) < 4 {
		return mutant{}, fmt.Errorf("%s: want three lines before the patch", file)
	}
	m.bug = strings.TrimPrefix(lines[0], "Bug: ")
	if n, err := fmt.Sscanf(lines[1], "Test: %s %s", &m.pkg, &m.test); n != 2 {
		return mutant{}, fmt.Errorf("%s: want \"Test: PACKAGE NAME\" in its second line: %w", file, err)
	}
	m.assertion = strings.TrimPrefix(lines[2], "Assertion: ")
	m.hunks = hunks(lines[3])
	if len(m.hunks) == 0 {
		return mutant{}, fmt.Errorf("%s: no hunk in it", file)
	}
	return m, nil
}

// hunks reads a unified diff. Line numbers are not looked at: a neighbour's edits move them.
func hunks(diff string) []hunk {
	var found []hunk
	file := ""
	for _, line := range strings.SplitAfter(diff, "\n") {
		switch {
		case strings.HasPrefix(line, "+++ b/"):
			file = strings.TrimSpace(strings.TrimPrefix(line, "+++ b/"))
		case strings.HasPrefix(line, "--- "), strings.HasPrefix(line, "diff "), strings.HasPrefix(line, "index "):
		case strings.HasPrefix(line, "@@ "):
			found = append(found, hunk{file: file})
		case line == "" || len(found) == 0:
		default:
			h := &found[len(found)-1]
			if line[0] != '+' {
				h.old += line[1:]
			}
			if line[0] != '-' {
				h.planted += line[1:]
			}
		}
	}
	return found
}

// plant puts the bug into a tree and returns what takes it out again. A piece that is not there to the letter, or there
// twice, is an error: a patch that fits anywhere else is another bug.
func (m mutant) plant(tree string) (restore func() error, err error) {
	before := map[string][]byte{}
	restore = func() error {
		var problems []error
		for path, content := range before {
			problems = append(problems, os.WriteFile(path, content, 0o600))
		}
		return errors.Join(problems...)
	}
	for _, h := range m.hunks {
		path := filepath.Join(tree, h.file)
		content, err := os.ReadFile(path) //nolint:gosec // below a directory of our own
		if err != nil {
			return restore, err
		}
		if n := strings.Count(string(content), h.old); n != 1 {
			return restore, fmt.Errorf("%s has this %d times:\n%s", h.file, n, h.old)
		}
		if _, known := before[path]; !known {
			before[path] = content
		}
		planted := strings.Replace(string(content), h.old, h.planted, 1)
		if err := os.WriteFile(path, []byte(planted), 0o600); err != nil { //nolint:gosec // below a directory of our own
			return restore, err
		}
	}
	return restore, nil
}
