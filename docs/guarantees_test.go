// Package docs_test keeps the documents true.
package docs_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// declaredTests are the names of all tests, with where they are.
func declaredTests(t *testing.T) map[string]bool {
	t.Helper()
	exists := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		for _, m := range declared.FindAllStringSubmatch(string(source), -1) {
			exists[m[1]] = true
		}
		return err
	})
	require.NoError(t, err)
	return exists
}

// guarantees are the sections of guarantees.md.
func guarantees(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("guarantees.md")
	require.NoError(t, err)
	sections := strings.Split(string(text), "\n## ")[1:]
	require.Len(t, sections, 9)
	return sections
}

// names are the words in backquotes on a section's line of this kind.
func names(section, kind string) []string {
	var found []string
	for line := range strings.Lines(section) {
		if rest, ok := strings.CutPrefix(line, "- "+kind+": "); ok {
			for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(rest, -1) {
				found = append(found, m[1])
			}
		}
	}
	return found
}

// Every test that guarantees.md names exists, and every guarantee names at least one.
func TestGuaranteesNameTestsThatExist(t *testing.T) {
	t.Parallel()
	exists := declaredTests(t)
	for _, section := range guarantees(t) {
		named := regexp.MustCompile("`(Test\\w+)`").FindAllStringSubmatch(section, -1)
		require.NotEmpty(t, named, section)
		for _, m := range named {
			require.True(t, exists[m[1]], "%s names %s, which does not exist", section[:2], m[1])
		}
	}
}

// Every mutant that is named exists, and each of them is named; every guarantee has one.
func TestGuaranteesNameTheMutants(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../internal/e2e/mutants/patches/*.patch")
	require.NoError(t, err)
	var planted, named []string
	for _, file := range files {
		planted = append(planted, strings.TrimSuffix(filepath.Base(file), ".patch"))
	}
	for _, section := range guarantees(t) {
		here := names(section, "mutants")
		require.NotEmpty(t, here, "%s names no mutant", section[:2])
		named = append(named, here...)
	}
	slices.Sort(named)
	require.Equal(t, planted, slices.Compact(named))
}

// Every property of the model that is named exists, and each of them is named under its own guarantee.
func TestGuaranteesNameTheModelsProperties(t *testing.T) {
	t.Parallel()
	model, err := os.ReadFile("model/charge.pml")
	require.NoError(t, err)
	properties := regexp.MustCompile(`\bG\d_[a-z_]+`).FindAllString(string(model), -1)
	slices.Sort(properties)
	var named []string
	for _, section := range guarantees(t) {
		for _, name := range names(section, "model") {
			require.Equal(t, section[:2], name[:2], name)
			named = append(named, name)
		}
	}
	slices.Sort(named)
	require.Equal(t, slices.Compact(properties), named)
}

// Every incident that is named has a test named after it, and there are tests of all twenty-five.
func TestGuaranteesNameTheIncidents(t *testing.T) {
	t.Parallel()
	tested, named := map[string]bool{}, map[string]bool{}
	for name := range declaredTests(t) {
		if m := regexp.MustCompile(`^TestIncident(\d\d)_`).FindStringSubmatch(name); m != nil {
			tested[m[1]] = true
		}
	}
	for _, section := range guarantees(t) {
		for line := range strings.Lines(section) {
			if rest, ok := strings.CutPrefix(line, "- incidents: "); ok {
				for number := range strings.SplitSeq(strings.TrimSpace(rest), ", ") {
					named[number] = true
				}
			}
		}
	}
	for n := range 25 {
		number := fmt.Sprintf("%02d", n+1)
		require.True(t, named[number], "no guarantee names incident %s", number)
		require.True(t, tested[number], "no test is named after incident %s", number)
	}
	require.Len(t, named, 25)
}
