package domain_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/domain"
)

// TestSettleDispute_WholeMatrix (G8): every status of a dispute as it is known, against every one as it is seen.
func TestSettleDispute_WholeMatrix(t *testing.T) {
	t.Parallel()
	statuses := append(domain.DisputeStatuses(), "escalated_to_the_moon")
	final := []domain.DisputeStatus{"won", "lost", "warning_closed"}
	contests := []domain.DisputeStatus{"needs_response", "under_review", "escalated_to_the_moon"}
	for _, to := range statuses {
		seen := domain.Dispute{ID: "dp_1", Status: to, Amount: domain.Money{Amount: 2500, Currency: "EUR"}, Reason: "general"}
		require.Equal(t, domain.DisputeMove{Changed: true, Tell: true}, domain.SettleDispute(nil, seen), to)
		for _, from := range statuses {
			known := seen
			known.Status = from
			want := domain.DisputeMove{Changed: from != to, Tell: from != to}
			if from != to && slices.Contains(final, from) {
				want = domain.DisputeMove{Denied: true}
			}
			require.Equal(t, want, domain.SettleDispute(&known, seen), "%s to %s", from, to)
			if from == to { // the money may come back after the verdict, and the amount be put right
				known.Withdrawn = true
				require.Equal(t, domain.DisputeMove{Changed: true}, domain.SettleDispute(&known, seen))
			}
		}
		require.Equal(t, to != "escalated_to_the_moon", to.Known())
		require.Equal(t, slices.Contains(final, to), to.Final())
		require.Equal(t, slices.Contains(contests, to), to.Contests())
	}
}
