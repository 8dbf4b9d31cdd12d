package e2e_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// G5: whoever sets up alarms goes by docs/metrics.md. Expected: it names every metric of ours that each binary shows, for
// that binary, and none that it does not; before anything has happened, since a series that appears with the first failure
// hides it.
func TestMetricsAreThoseOfTheDocument(t *testing.T) {
	t.Parallel()
	document, err := os.ReadFile(filepath.Join("..", "..", "docs", "metrics.md"))
	require.NoError(t, err)
	rows := regexp.MustCompile("(?m)^\\| `(holdfast_\\w+)` \\|[^|]*\\| ([^|]*) \\|").FindAllStringSubmatch(string(document), -1)
	b := newBed(t, nil)
	for _, binary := range []string{"api", "worker", "reconciler"} {
		promised := map[string]bool{} // and whether it is there from the start
		for _, row := range rows {
			for _, name := range strings.Split(row[2], ", ") {
				if strings.TrimSuffix(name, "¹") == binary {
					promised[row[1]] = name == binary
				}
			}
		}
		s := b.service(binary, "STRIPE_WEBHOOK_SECRETS=whsec_of_the_metrics")
		if binary == "api" {
			s.metrics = freeAddress(t)
			s.env = append(s.env, "METRICS_ADDR="+s.metrics)
		}
		s.Start()
		s.AwaitReady() // one request at least
		page := customer{url: "http://" + s.metrics, http: s.http}.path(t, "/metrics").body
		var shown []string
		for _, m := range regexp.MustCompile(`(?m)^# HELP (holdfast_\w+) \S`).FindAllStringSubmatch(page, -1) {
			shown = append(shown, m[1])
		}
		require.NotEmpty(t, shown)
		for name, always := range promised {
			require.True(t, !always || slices.Contains(shown, name), "%s has no %s, which docs/metrics.md promises", binary, name)
		}
		for _, name := range shown {
			require.Contains(t, promised, name, "docs/metrics.md does not tell of %s of %s", name, binary)
			require.Contains(t, page, "\n"+name, "%s has a series", name)
		}
	}
}
