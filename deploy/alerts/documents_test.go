package alerts_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/require"
)

func document(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", name))
	require.NoError(t, err)
	return string(text)
}

// told is what docs/metrics.md says of each alert: its severity, and the metrics beside which it stands. The metrics are all of them.
func told(t *testing.T) (severity map[string]string, beside map[string][]string, metrics []string) {
	t.Helper()
	severity, beside = map[string]string{}, map[string][]string{}
	for line := range strings.Lines(document(t, "metrics.md")) {
		metric := regexp.MustCompile("^\\| `(holdfast_\\w+)` \\|").FindStringSubmatch(line)
		if metric == nil {
			continue
		}
		metrics = append(metrics, metric[1])
		alarms := regexp.MustCompile(`\*(page|look)\* \[(\w+)\]\(runbook\.md#(\w+)\)`).FindAllStringSubmatch(line, -1)
		require.Len(t, alarms, strings.Count(line, "*page*")+strings.Count(line, "*look*"), "an alarm of %s names no alert", metric[1])
		for _, a := range alarms {
			require.Equal(t, strings.ToLower(a[2]), a[3], "the anchor of %s", a[2])
			require.Contains(t, []string{"", a[1]}, severity[a[2]], "%s has two severities", a[2])
			severity[a[2]], beside[a[2]] = a[1], append(beside[a[2]], metric[1])
		}
	}
	return severity, beside, metrics
}

// Each alert says in words what is the matter, and where to read on; docs/metrics.md has each, with its severity, beside the metrics
// that it looks at, and no other; and those metrics exist.
func TestAlertsAreThoseOfTheDocument(t *testing.T) {
	t.Parallel()
	severity, beside, metrics := told(t)
	var names []string
	for _, rule := range rules(t) {
		names = append(names, rule.Alert)
		require.NotEmpty(t, rule.Annotations["summary"], rule.Alert)
		require.NotEmpty(t, rule.Annotations["description"], rule.Alert)
		require.Equal(t, "docs/runbook.md#"+strings.ToLower(rule.Alert), rule.Annotations["runbook_url"])
		require.Equal(t, severity[rule.Alert], rule.Labels["severity"], rule.Alert)
		used := used(t, rule.Expr, metrics)
		for _, metric := range beside[rule.Alert] {
			require.Contains(t, used, metric, "%s stands beside it", rule.Alert)
		}
	}
	require.Len(t, slices.Compact(slices.Sorted(slices.Values(names))), len(names), "an alert twice")
	for name := range severity {
		require.Contains(t, names, name, "docs/metrics.md has an alert that the rules have not")
	}
}

// used are the metrics of an expression, each of which must be in docs/metrics.md; a test of the binaries holds that page to what
// they show.
func used(t *testing.T, expr string, metrics []string) (found []string) {
	t.Helper()
	tree, err := promQL.ParseExpr(expr)
	require.NoError(t, err)
	parser.Inspect(tree, func(n parser.Node, _ []parser.Node) error {
		if v, ok := n.(*parser.VectorSelector); ok {
			metric := regexp.MustCompile(`_(bucket|count)$`).ReplaceAllString(v.Name, "")
			require.Contains(t, metrics, metric)
			found = append(found, metric)
		}
		return nil
	})
	return found
}

// Every alert has a section in the runbook, which says what it means, where to look, what to do, and what not; and every section
// under "Alarms" is of an alert. What is linked to exists.
func TestRunbookHasASectionForEachAlert(t *testing.T) {
	t.Parallel()
	text := document(t, "runbook.md")
	var alerts []string
	for _, rule := range rules(t) {
		alerts = append(alerts, rule.Alert)
	}
	anchors := map[string]bool{}
	for _, heading := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(text, -1) {
		slug := regexp.MustCompile(`[^\w -]`).ReplaceAllString(strings.ToLower(heading[1]), "")
		anchors[strings.ReplaceAll(slug, " ", "-")] = true
	}
	var sections []string
	for _, chapter := range strings.Split(text, "\n## ")[1:] {
		if !strings.HasPrefix(chapter, "Alarms: ") {
			require.Regexp(t, "`(worker|reconciler) |\\]\\(#", chapter, "a section that leads to no command")
			continue
		}
		for _, section := range strings.Split(chapter, "\n### ")[1:] {
			name, body, _ := strings.Cut(section, "\n")
			sections = append(sections, name)
			at := 0
			for _, part := range []string{"**Means** ", "**Look** ", "**Act** ", "**Do not** "} {
				where := strings.Index(body, part)
				require.Greater(t, where, at, "%s: %s", name, part)
				at = where
			}
		}
	}
	require.ElementsMatch(t, alerts, sections)
	for _, link := range regexp.MustCompile(`\]\(#([\w-]+)\)`).FindAllStringSubmatch(text, -1) {
		require.True(t, anchors[link[1]], "a link to #%s, which is nowhere", link[1])
	}
	for _, link := range regexp.MustCompile(`runbook\.md#([\w-]+)`).FindAllStringSubmatch(document(t, "metrics.md"), -1) {
		require.True(t, anchors[link[1]], "a link to #%s, which is nowhere", link[1])
	}
}
