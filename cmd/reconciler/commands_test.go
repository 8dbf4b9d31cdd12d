package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/internal/cli"
	"holdfast/internal/testdb"
	"holdfast/outbox"
	"holdfast/payments/stripesim"
)

func TestMain(m *testing.M) { testdb.Main(m) }

const nobody = "127.0.0.1:1"

// testBundle is a database with one booking, whose charge may be spoiled.
type testBundle struct {
	*testdb.DB
	booking  domain.BookingID
	charge   domain.EffectID
	provider string // the URL of its API
}

func setup(t *testing.T) *testBundle {
	t.Helper()
	b := &testBundle{
		DB: testdb.New(t), booking: domain.NewID[domain.BookingID](), charge: domain.NewID[domain.EffectID](), provider: "http://" + nobody,
	}
	resource := domain.NewID[domain.ResourceID]()
	b.exec(t, `
		INSERT INTO resources (id, name, time_zone, places, unit_minutes, price, currency, hold)
		VALUES ($1, 'Court 1', 'Europe/Berlin', 1, 60, 2500, 'EUR', '10 minutes')`, resource)
	b.exec(t, `
		SELECT accept_booking(
			$1, '/v1/bookings', 'key', '\x00', 1::smallint, '24 hours', $2, $3, $4, $5, $6,
			'2030-05-01T10:00Z', '2030-05-01T11:00Z', 1, NULL, NULL, 'Ada', 'ada@example.com', 'pm_card_visa', '{}')`,
		domain.NewID[domain.ClientID](), b.booking, domain.NewID[domain.PaymentID](), b.charge, domain.NewID[domain.EffectID](), resource)
	b.exec(t, `UPDATE outbox SET created_at = now() + interval '1 hour' WHERE kind = 'publish'`) // it has no job yet
	// What the account's balance did is read by others, or it would be due as soon as the second ends.
	b.exec(t, `INSERT INTO provider_transactions_cursor (read_to, due_at) VALUES (now(), now() + interval '1 day')`)
	return b
}

func (b *testBundle) exec(t *testing.T, query string, args ...any) {
	t.Helper()
	_, err := b.Pool.Exec(t.Context(), query, args...)
	require.NoError(t, err)
}

// doubt puts the charge in doubt, with an intent that only its id is known of.
func (b *testBundle) doubt(t *testing.T, due string) {
	t.Helper()
	b.exec(t, `UPDATE payments SET provider_intent_id = 'pi_lost' WHERE booking_id = $1`, b.booking)
	b.exec(t, `UPDATE outbox SET status = 'in_doubt', due_at = now() + $2::text::interval WHERE id = $1`, b.charge, due)
}

// run runs the program and returns its exit code and what it wrote.
func (b *testBundle) run(t *testing.T, metrics string, args ...string) (code int, out, errs string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	env := map[string]string{
		"DATABASE_URL": b.URL, "STRIPE_API_KEY": "sk_test_reconciler", "STRIPE_API_BASE": b.provider, "METRICS_ADDR": metrics,
	}
	code = program().Run(t.Context(), args, func(name string) string { return env[name] }, cli.IO{Out: &stdout, Err: &stderr})
	return code, stdout.String(), stderr.String()
}

// TestHelpShowsWhatActs: a setting is offered only by commands in which it does something.
func TestHelpShowsWhatActs(t *testing.T) {
	t.Parallel()
	for command, want := range map[string]bool{"exceptions list": false, "exceptions note": false, "exceptions sign-off": false, "fees": false, "report": true} {
		var out bytes.Buffer
		code := program().Run(t.Context(), append(strings.Fields(command), "--help"), func(string) string { return "" }, cli.IO{Out: &out, Err: io.Discard})
		require.Equal(t, cli.ExitDone, code, command)
		require.Equal(t, want, strings.Contains(out.String(), "FINANCE_READS_PER_SECOND"), out.String())
	}
}

// TestOnceWithNothingToDo: exit 0, and it says so.
func TestOnceWithNothingToDo(t *testing.T) {
	t.Parallel()
	b := setup(t)
	code, out, errs := b.run(t, "", "once")
	require.Equal(t, cli.ExitDone, code, errs)
	require.Equal(t, "nothing was due\n", out)
}

// TestOnceTellsOfADoubtThatWaits (G4): nothing was due, and yet something is stuck: when its turn is, and how to have it
// looked at now.
func TestOnceTellsOfADoubtThatWaits(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.doubt(t, "1 hour")
	code, out, errs := b.run(t, "", "once")
	require.Equal(t, cli.ExitProblem, code, errs)
	require.Empty(t, errs)
	require.Regexp(t, `^nothing was due\nstuck: charge `+b.charge.String()+` of booking .*: in doubt; the reconciler asks the provider next at 2.*\n`+
		`  to have it looked at now: worker outbox replay `+b.charge.String()+` --reason …\n$`, out)
}

// TestOnceTellsWhetherTheProviderCouldBeRead (G4): "it is still in doubt" and "nobody could look" are not the same.
func TestOnceTellsWhetherTheProviderCouldBeRead(t *testing.T) {
	t.Parallel()
	sim, err := stripesim.Start(t.Context(), "127.0.0.1:0", stripesim.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, sim.Close()) })
	for provider, want := range map[string]int{"http://" + nobody: cli.ExitUnknown, sim.URL: cli.ExitProblem} {
		b := setup(t)
		b.provider = provider
		b.doubt(t, "-1 minute")
		code, out, errs := b.run(t, "", "once")
		require.Equal(t, want, code, errs)
		require.Contains(t, out, "doubts: 1\n")
		require.Contains(t, out, "stuck: charge "+b.charge.String())
		if want == cli.ExitUnknown {
			require.Contains(t, errs, "reconciler: the provider could not be read; every doubt stands as it was\n")
		} else {
			require.Empty(t, errs)
		}
	}
}

// TestOnceRevivesAllLostJobsAndTellsOfPauses (G5): a single round has no next one that goes on.
func TestOnceRevivesAllLostJobsAndTellsOfPauses(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, err := outbox.Pause(t.Context(), b.Pool, domain.EffectCharge, "ada", "fraud wave")
	require.NoError(t, err)
	b.exec(t, `DELETE FROM river_job`)
	code, out, errs := b.run(t, "", "once")
	require.Equal(t, cli.ExitDone, code, errs)
	require.Regexp(t, `^lost jobs: 1\ncharge is paused since .* by ada: fraud wave; worker outbox resume charge\n$`, out)
	code, out, _ = b.run(t, "", "once", "--json")
	require.Equal(t, cli.ExitDone, code)
	var answer map[string]any
	require.NoError(t, json.Unmarshal([]byte(out), &answer))
	require.Len(t, answer["pauses"], 1)
	require.Empty(t, answer["done"])
}

// TestReconcilerTellsWhyItCannotStart: what is wrong with the set-up is exit 2, a database that is away is exit 3, and
// each is told in one line without the password (G9).
func TestReconcilerTellsWhyItCannotStart(t *testing.T) {
	t.Parallel()
	b := setup(t)
	empty := testdb.New(t)
	_, err := empty.Pool.Exec(t.Context(), `DROP SCHEMA public CASCADE; CREATE SCHEMA public`)
	require.NoError(t, err)
	taken, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, taken.Close()) }()
	code, _, errs := b.run(t, taken.Addr().String(), "run")
	require.Equal(t, cli.ExitUsage, code)
	require.Contains(t, errs, "METRICS_ADDR")
	for url, want := range map[string]struct {
		code int
		line string
	}{
		"postgres://user:s3cret@" + nobody + "/none": {cli.ExitUnknown, "reconciler: cannot reach the database at " + nobody + "\n"},
		empty.URL: {cli.ExitUsage, "reconciler: the database has no schema yet, or an older one; run: api migrate\n"},
	} {
		for _, command := range []string{"run", "once"} {
			b.URL = url
			code, out, errs := b.run(t, "", command)
			require.Equal(t, want.code, code, errs)
			require.Empty(t, out)
			require.Equal(t, want.line, errs)
		}
	}
	code = program().Run(t.Context(), []string{"run", "--worker-dead-after", "1h"}, func(string) string { return "" }, cli.IO{Out: io.Discard, Err: io.Discard})
	require.Equal(t, cli.ExitUsage, code)
}
