package e2e_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Expected: with nothing in the environment each long-running command prints all that is missing, one line each, and
// exits 2. The same where every value is wrong.
func TestEachBinaryNamesAllItsProblemsAtOnce(t *testing.T) {
	t.Parallel()
	wrong := []string{
		"DATABASE_URL=not a url", "HTTP_ADDR=nowhere", "STRIPE_API_BASE=nowhere", "DB_MAX_CONNS=many", "LOG_LEVEL=loud",
		"STRIPE_TIMEOUT=soon", "SEND_BACKOFF=-1s", "RECONCILE_INTERVAL=0s", "MAX_WORKERS=0", "PUBLISH_BACKOFF=1h",
	}
	for _, test := range []struct {
		binary, verb string
		missing      []string
		wrong        []string
	}{
		{"api", "serve", []string{"DATABASE_URL"}, []string{"DATABASE_URL", "HTTP_ADDR", "DB_MAX_CONNS", "LOG_LEVEL"}},
		{
			"worker", "run",
			[]string{"DATABASE_URL", "NATS_URL", "STRIPE_API_KEY"},
			[]string{
				"DATABASE_URL", "NATS_URL", "STRIPE_API_KEY", "STRIPE_API_BASE", "DB_MAX_CONNS", "LOG_LEVEL", "STRIPE_TIMEOUT",
				"SEND_BACKOFF", "MAX_WORKERS", "PUBLISH_BACKOFF",
			},
		},
		{
			"reconciler", "run",
			[]string{"DATABASE_URL", "STRIPE_API_KEY"},
			[]string{
				"DATABASE_URL", "STRIPE_API_KEY", "STRIPE_API_BASE", "DB_MAX_CONNS", "LOG_LEVEL", "STRIPE_TIMEOUT", "SEND_BACKOFF",
				"RECONCILE_INTERVAL",
			},
		},
	} {
		for _, given := range []struct{ env, named []string }{{nil, test.missing}, {wrong, test.wrong}} {
			stdout, stderr, code := run(t, given.env, test.binary, test.verb)
			require.Equal(t, 2, code, stderr)
			require.Empty(t, stdout)
			for _, variable := range given.named {
				require.True(t, slices.ContainsFunc(strings.Split(stderr, "\n"), func(line string) bool {
					return strings.HasPrefix(line, test.binary+": "+variable)
				}), "%s names %s:\n%s", test.binary, variable, stderr)
			}
		}
	}
}

// Expected: --help of each binary and of each sub-command that it lists exits 0, tells how to use it, and needs no
// environment; a sub-command that does not exist exits 2.
func TestEachCommandExplainsItself(t *testing.T) {
	t.Parallel()
	listed := 0
	for _, binary := range []string{"api", "worker", "reconciler"} {
		help, _, code := run(t, nil, binary, "--help")
		require.Zero(t, code)
		_, commands, found := strings.Cut(help, "\nCommands:\n")
		require.True(t, found, help)
		for line := range strings.SplitSeq(commands, "\n") {
			name, _, _ := strings.Cut(strings.TrimPrefix(line, "  "), "  ")
			if !strings.HasPrefix(line, "  ") || strings.HasPrefix(line, "   ") {
				continue // the second line of a summary
			}
			listed++
			stdout, stderr, code := run(t, nil, binary, append(strings.Fields(name), "--help")...)
			require.Zero(t, code, "%s %s", binary, name)
			require.Empty(t, stderr)
			require.Contains(t, stdout, "Usage: "+binary+" "+name)
		}
		_, stderr, code := run(t, nil, binary, "dance")
		require.Equal(t, 2, code)
		require.NotEmpty(t, stderr)
	}
	require.GreaterOrEqual(t, listed, 12)
}

// Expected: on an empty database the API says that it is not ready until `api migrate` has run; the second run finds
// nothing to do. Where no database answers, a command exits 3: it could not tell.
func TestMigrateMakesTheAPIReady(t *testing.T) {
	t.Parallel()
	b := newBed(t, nil)
	_, err := b.db.Pool.Exec(t.Context(), `DROP SCHEMA public CASCADE; CREATE SCHEMA public`)
	require.NoError(t, err)
	api := b.service("api")
	api.Start()
	eventually(t, readyWithin, "the API answers, and is not ready", func() bool { return api.ready() == 503 })

	stdout, stderr, code := b.command("api", "migrate")
	require.Zero(t, code, stderr)
	require.Contains(t, stdout, "applied 0001")
	api.AwaitReady()
	stdout, stderr, code = b.command("api", "migrate")
	require.Zero(t, code, stderr)
	require.Equal(t, "up to date\n", stdout)

	nobody := []string{"DATABASE_URL=postgres://user:secret@" + freeAddress(t) + "/none"}
	for binary, verb := range map[string][]string{"api": {"token", "list"}, "worker": {"outbox", "list"}} {
		_, stderr, code := run(t, nobody, binary, verb...)
		require.Equal(t, 3, code, "%s: %s", binary, stderr)
		require.NotContains(t, stderr, "secret")
	}
}
