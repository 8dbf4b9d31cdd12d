package finance_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/internal/finance"
	"holdfast/internal/testdb"
)

// Each kind that the database knows is told in words, and docs/finance.md has the same words.
func TestKinds_AreToldAlikeEverywhere(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile(filepath.Join("..", "..", "docs", "finance.md"))
	require.NoError(t, err)
	var constraint string
	require.NoError(t, testdb.New(t).Pool.QueryRow(t.Context(),
		`SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = 'reconciliation_items_kind_check'`).Scan(&constraint))
	var stored, told []string
	for _, name := range regexp.MustCompile(`'([a-z_]+)'`).FindAllStringSubmatch(constraint, -1) {
		stored = append(stored, name[1])
	}
	for _, k := range finance.Kinds() {
		told = append(told, k.Name)
		require.Contains(t, string(raw), fmt.Sprintf("\n| `%s` | %s | %s |\n", k.Name, k.Means, k.Next))
	}
	require.ElementsMatch(t, stored, told)
}
