// Package docs_test keeps the documents true.
package docs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Every test that guarantees.md names exists, and every guarantee names at least one.
func TestGuaranteesNameTestsThatExist(t *testing.T) {
	t.Parallel()
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
	text, err := os.ReadFile("guarantees.md")
	require.NoError(t, err)
	sections := strings.Split(string(text), "\n## ")[1:]
	require.Len(t, sections, 9)
	for _, section := range sections {
		named := regexp.MustCompile("`(Test\\w+)`").FindAllStringSubmatch(section, -1)
		require.NotEmpty(t, named, section)
		for _, m := range named {
			require.True(t, exists[m[1]], "%s names %s, which does not exist", section[:2], m[1])
		}
	}
}
