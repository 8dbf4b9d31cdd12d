package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/internal/cli"
)

// TestTheRunbooksCommandsExist: at three in the morning nobody looks for the right flag. Each command of docs/runbook.md is taken as
// it stands there, and lacks nothing but a database.
func TestTheRunbooksCommandsExist(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "runbook.md"))
	require.NoError(t, err)
	commands := regexp.MustCompile("`(worker [^`]+)`").FindAllStringSubmatch(strings.ReplaceAll(string(text), "\n", " "), -1)
	require.Greater(t, len(commands), 30)
	values := map[string]string{"ID": "0193b7a4-0000-7000-8000-000000000000", "TEXT": "why", "FROM": "2030-01-01T00:00:00Z", "TO": "2030-01-02T00:00:00Z", "KIND": "charge"}
	for _, c := range commands {
		var args []string
		for _, word := range strings.Fields(c[1])[1:] {
			if value, placeholder := values[strings.ReplaceAll(word, "BOOKING", "ID")]; placeholder {
				word = value
			}
			args = append(args, word)
		}
		if !strings.Contains(c[1], "--") && strings.Count(c[1], " ") < 2 {
			continue
		}
		var out, errs bytes.Buffer
		code := program().Run(t.Context(), args, func(string) string { return "" }, cli.IO{In: strings.NewReader(""), Out: &out, Err: &errs})
		require.Equal(t, cli.ExitUsage, code, "%s: %s%s", c[1], out.String(), errs.String())
		lines := strings.Split(strings.TrimSpace(errs.String()), "\n")
		for _, line := range lines {
			require.Regexp(t, `(DATABASE_URL|NATS_URL|STRIPE_API_KEY) is not set`, line, c[1])
		}
	}
}
