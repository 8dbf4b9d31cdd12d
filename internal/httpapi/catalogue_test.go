package httpapi_test

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/internal/httpapi"
)

// The catalogue tells of each code, under its status, once, with every column filled, and of none that does not exist.
func TestErrorCatalogueIsTheCodes(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/errors.md")
	require.NoError(t, err)
	catalogue := map[httpapi.Code]bool{}
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "| `") {
			continue
		}
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		require.Len(t, cells, 6, line)
		for _, cell := range cells {
			require.NotEmpty(t, strings.TrimSpace(cell), line)
		}
		code := httpapi.Code(strings.Trim(cells[0], " `†"))
		require.False(t, catalogue[code], "docs/errors.md lists %s twice", code)
		catalogue[code] = true
		require.Equal(t, strconv.Itoa(httpapi.StatusOf(code)), strings.TrimSpace(cells[1]),
			"docs/errors.md: the status of %s (0: there is no such code)", code)
	}
	for _, code := range httpapi.Codes() {
		require.True(t, catalogue[code], "docs/errors.md does not tell of %s: add what it means, what may have happened, what to do", code)
	}
}
