package finance_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/finance"
)

// An age is never more exact than it is known to be, and never less than what somebody waits for.
func TestAge(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		-time.Second: "0 min", 7*time.Minute + 59*time.Second: "7 min", 14*time.Hour + 45*time.Minute: "14 h 45 min", 76 * time.Hour: "3 d 4 h", 170 * time.Hour: "7 d",
	} {
		require.Equal(t, want, finance.Age(d))
	}
}
