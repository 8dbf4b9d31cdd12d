package telemetry_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/internal/telemetry"
)

// Expected: the trace id of a valid header, also of a version to come; nothing of any other, whatever it holds.
func TestTraceparent(t *testing.T) {
	t.Parallel()
	const id, parent = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	for _, valid := range []string{"00-" + id + "-" + parent + "-01", "00-" + id + "-" + parent + "-00", "cc-" + id + "-" + parent + "-01-more"} {
		got, ok := telemetry.ParseTraceparent([]string{valid})
		require.True(t, ok, valid)
		require.Equal(t, telemetry.Trace(id), got)
	}
	valid := "00-" + id + "-" + parent + "-01"
	for _, bad := range [][]string{
		nil,
		{""},
		{valid, valid},
		{" " + valid},
		{valid + "\n"},
		{valid + "-more"},
		{strings.ToUpper(valid)},
		{"ff" + valid[2:]},
		{"00-" + strings.Repeat("0", 32) + "-" + parent + "-01"},
		{"00-" + id + "-" + strings.Repeat("0", 16) + "-01"},
		{"00-" + id[1:] + "-" + parent + "-01"},
		{"00-" + id + "-" + parent},
		{"sk_live_secret"},
		{"cc" + valid[2:] + "-" + strings.Repeat("x", 600)},
	} {
		got, ok := telemetry.ParseTraceparent(bad)
		require.False(t, ok, bad)
		require.Empty(t, got)
	}
}

// Expected: every line of a traced context has its id once, whatever the logger was derived from; others have none.
func TestLinesCarryTheTrace(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	logger := telemetry.NewLogger(&out, slog.LevelInfo, "test").With("more", 1)
	id := telemetry.NewTrace()
	require.Regexp(t, `^[0-9a-f]{32}$`, string(id))
	require.NotEqual(t, id, telemetry.NewTrace())
	logger.InfoContext(telemetry.WithTrace(t.Context(), id), "traced")
	logger.InfoContext(t.Context(), "plain")
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.Len(t, lines, 2)
	var line map[string]any
	require.NoError(t, json.Unmarshal([]byte(lines[0]), &line))
	require.Equal(t, string(id), line["trace_id"])
	require.Equal(t, 1, strings.Count(lines[0], "trace_id"))
	require.NotContains(t, lines[1], "trace_id")
}
