package finance_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/internal/finance"
)

// Of a history made by others, everything that was planted is found, and nothing else; through the port and from files (G8).
func TestMatch_FindsWhatWasPlantedAndNothingElse(t *testing.T) {
	t.Parallel()
	for _, source := range []string{"port", "files"} {
		t.Run(source, func(t *testing.T) {
			t.Parallel()
			b := setup(t, *transactions, 4)
			d := finance.New(b.Pool, b.provider(), finance.Config{ReadsPerSecond: 1e6, Stride: 500}, quiet()) // in several parts
			if source == "files" {
				d = b.desk(nil)
				b.importAll(d)
			} else {
				require.NoError(t, d.Read(t.Context(), b.window))
			}
			b.agrees()
			require.NoError(t, d.Match(t.Context(), b.window))
			require.Equal(t, b.planted(), b.found())
		})
	}
}
