package main

import (
	"context"
	"encoding/json"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"
)

const patience = 3 * time.Minute // no test waits for so long unless it fails

//nolint:paralleltest,tparallel // its subtests are steps of one story
func TestStackIsDescribedSupervisedAndRemoved(t *testing.T) {
	t.Parallel()
	state := openDir(t)
	file := filepath.Join(state, "stack.json")
	s, err := startStack(t.Context(), &printer{w: io.Discard}, stackOptions{
		root: state, state: state, bin: fakeBinaries(t), file: file,
	})
	require.NoError(t, err)
	d := readDescription(t, file)

	t.Run("the description is complete and for this user only", func(t *testing.T) {
		info, err := os.Stat(file)
		require.NoError(t, err)
		require.Equal(t, fs.FileMode(0o600), info.Mode().Perm())
		for _, name := range []string{"api", "worker", "reconciler", "postgres", "nats", "stripesim"} {
			require.NoError(t, syscall.Kill(d.PIDs[name], 0), name)
		}
		require.Equal(t, map[string]string{
			"customer": "token-of-customer", "customer2": "token-of-customer2", "finance": "token-of-finance", "operator": "token-of-operator", "operator2": "token-of-operator2",
		}, d.Tokens)
		require.Equal(t, 1, d.Resources[0].Places)
		require.Greater(t, d.Resources[1].Places, 1)
	})

	t.Run("what it names can be reached", func(t *testing.T) {
		conn, err := pgx.Connect(t.Context(), d.DatabaseURL)
		require.NoError(t, err)
		require.NoError(t, conn.Close(t.Context()))
		broker, err := nats.Connect(d.NATSURL)
		require.NoError(t, err)
		broker.Close()
		require.NoError(t, answers(d.APIURL+"/readyz")(t.Context()))
		require.NoError(t, answers(d.MetricsURL)(t.Context()))
		require.NoError(t, answers(d.StripeURL+"/_sim/ledger")(t.Context()))
	})

	t.Run("a shell can use it", func(t *testing.T) {
		env := filepath.Join(state, "env")
		info, err := os.Stat(env)
		require.NoError(t, err)
		require.Equal(t, fs.FileMode(0o600), info.Mode().Perm())
		const script = `. "$0" && echo "$DATABASE_URL $NATS_URL $STRIPE_API_BASE $STRIPE_API_KEY" && command -v worker`
		output, err := exec.CommandContext(t.Context(), "sh", "-c", script, env).Output()
		require.NoError(t, err)
		require.Equal(t, []string{d.DatabaseURL, d.NATSURL, d.StripeURL, "sk_test_local", s.opts.binary("worker")}, strings.Fields(string(output)))
		var said strings.Builder
		describe(&printer{w: &said}, s)
		require.Contains(t, said.String(), "\n. env\n", "as seen from the checkout")
	})

	t.Run("what dies is started again where it was, and described anew", func(t *testing.T) {
		for _, name := range []string{"worker", "nats", "postgres"} {
			require.NoError(t, syscall.Kill(d.PIDs[name], syscall.SIGKILL))
		}
		require.Eventually(t, func() bool {
			now := readDescription(t, file)
			for _, name := range []string{"worker", "nats", "postgres"} {
				if now.PIDs[name] == d.PIDs[name] {
					return false
				}
			}
			broker, err := nats.Connect(d.NATSURL)
			if err != nil {
				return false
			}
			broker.Close()
			conn, err := pgx.Connect(t.Context(), d.DatabaseURL)
			return err == nil && conn.Close(t.Context()) == nil
		}, patience, 50*time.Millisecond)
	})

	d = readDescription(t, file)
	require.NoError(t, s.stop())
	require.NoFileExists(t, file)
	for name, pid := range d.PIDs {
		require.True(t, gone(pid), name)
	}
	left, err := filepath.Glob(filepath.Join(state, "*"))
	require.NoError(t, err)
	require.Equal(t, []string{filepath.Join(state, "logs")}, left, "the logs are all that stays")
}

func TestKilledStackTakesItsProcessesAlong(t *testing.T) {
	t.Parallel()
	state := openDir(t)
	cmd := exec.CommandContext(t.Context(), os.Args[0], "stack", state, fakeBinaries(t))
	cmd.Stderr = t.Output()
	require.NoError(t, cmd.Start())
	file := filepath.Join(state, "stack.json")
	require.Eventually(t, func() bool {
		_, err := os.Stat(file)
		return err == nil
	}, patience, 20*time.Millisecond)
	d := readDescription(t, file)
	require.Len(t, d.PIDs, 6)

	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait())
	for name, pid := range d.PIDs {
		require.Eventually(t, func() bool { return gone(pid) }, patience, 20*time.Millisecond, name)
	}
}

func TestFailedStartSaysWhyAndLeavesNothing(t *testing.T) {
	t.Parallel()
	state, bin := openDir(t), fakeBinaries(t)
	require.NoError(t, os.Remove(filepath.Join(bin, "stripesim")))
	script := "#!/bin/sh\necho no luck today >&2\nexit 9\n"
	require.NoError(t, os.WriteFile(filepath.Join(bin, "stripesim"), []byte(script), 0o755))
	_, err := startStack(t.Context(), &printer{w: io.Discard}, stackOptions{root: state, state: state, bin: bin})
	require.ErrorContains(t, err, "stripesim ended instead of becoming ready")
	require.ErrorContains(t, err, "no luck today")
	require.NoDirExists(t, filepath.Join(state, "postgres"))
}

// An interrupt ends what runs just then, too: that is no news, and all that has started is stopped.
func TestInterruptedStartSaysSoAndLeavesNothing(t *testing.T) {
	t.Parallel()
	state, bin := openDir(t), fakeBinaries(t)
	require.NoError(t, os.Remove(filepath.Join(bin, "api")))
	script := "#!/bin/sh\n: >" + filepath.Join(state, "migrating") + "\nexec sleep 60\n"
	require.NoError(t, os.WriteFile(filepath.Join(bin, "api"), []byte(script), 0o755))
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer cancel()
		for {
			if _, err := os.Stat(filepath.Join(state, "migrating")); err == nil || t.Context().Err() != nil {
				return
			}
			<-time.After(10 * time.Millisecond)
		}
	}()
	_, err := startStack(ctx, &printer{w: io.Discard}, stackOptions{root: state, state: state, bin: bin, file: filepath.Join(state, "stack.json")})
	require.EqualError(t, err, "interrupted")
	require.Equal(t, exitInterrupted, exitStatus(err))
	require.NoDirExists(t, filepath.Join(state, "postgres"))
	require.NoFileExists(t, filepath.Join(state, "env"))
}

func TestOneStackForOneState(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	unlock, err := lockState(state)
	require.NoError(t, err)
	_, err = lockState(state)
	require.ErrorContains(t, err, "a stack is up already")
	unlock()
	unlock, err = lockState(state)
	require.NoError(t, err)
	unlock()
}

func readDescription(t *testing.T, file string) description {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	var d description
	require.NoError(t, json.Unmarshal(text, &d), "%s", text)
	return d
}
