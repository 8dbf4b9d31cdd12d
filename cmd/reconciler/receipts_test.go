package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/internal/cli"
)

// TestParkedEventsAreDecided (G7): a person sees what nobody understood, has it tried once more or is done with it; each act leaves
// its one row with who and why, and is refused where nothing waits for a person.
func TestParkedEventsAreDecided(t *testing.T) {
	t.Parallel()
	b := setup(t)
	code, out, _ := b.run(t, "", "events", "list")
	require.Equal(t, cli.ExitDone, code)
	require.Equal(t, "nothing\n", out)
	for _, id := range []string{"evt_a", "evt_b", "evt_c"} {
		b.exec(t, `
			INSERT INTO provider_events (id, type, livemode, object_type, object_id, intent_id, booking_id, payment_id, request_key,
			                             created_at, via, status, attempts, last_error, finished_at)
			VALUES ($1, 'charge.succeeded', false, 'charge', 'ch_1', 'pi_other', $2, '', '', now(), 'webhook', 'parked', 7,
			        'it tells of money on an intent that is not the payment''s', now())`, id, b.booking.String())
	}
	b.exec(t, `UPDATE provider_events SET status = 'settled' WHERE id = 'evt_c'`)
	code, out, _ = b.run(t, "", "events", "list")
	require.Equal(t, cli.ExitProblem, code)
	require.Regexp(t, `^event evt_a \(charge.succeeded\) of intent pi_other, parked since .*: it tells of money on an intent that is not the payment's\nevent evt_b .*\n$`, out)

	code, out, _ = b.run(t, "", "once")
	require.Equal(t, cli.ExitProblem, code)
	require.Regexp(t, `(?m)^a webhook receipt waits for a person: event evt_a .*\n  once looked at: reconciler events retry evt_a --reason …, or: reconciler events ignore evt_a --reason …$`, out)
	require.NotContains(t, out, "stuck")

	for _, test := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"events", "retry", "evt_a"}, cli.ExitUsage, "--reason is missing"},
		{[]string{"events", "retry", "evt_a", "--reason", " "}, cli.ExitUsage, "--reason is missing"},
		{[]string{"events", "retry", "evt_x", "--reason", "why"}, cli.ExitUsage, "there is no such event"},
		{[]string{"events", "retry", "evt_c", "--reason", "why"}, cli.ExitProblem, "event evt_c is settled; only a parked one waits for a person"},
		{[]string{"events", "retry", "evt_a", "--reason", "the booking was restored", "--actor", "ada"}, cli.ExitDone, ""},
		{[]string{"events", "retry", "evt_a", "--reason", "twice", "--actor", "ada"}, cli.ExitProblem, "event evt_a is pending"},
		{[]string{"events", "ignore", "evt_b", "--reason", "given back by hand", "--actor", "bob"}, cli.ExitDone, ""},
		{[]string{"events", "ignore", "evt_b", "--reason", "twice", "--actor", "bob"}, cli.ExitProblem, "event evt_b is ignored"},
	} {
		code, _, errs := b.run(t, "", test.args...)
		require.Equal(t, test.code, code, "%v: %s", test.args, errs)
		require.Contains(t, errs, test.says)
	}
	var acts string
	require.NoError(t, b.Pool.QueryRow(t.Context(), `
		SELECT string_agg(concat_ws(' ', actor, action, before ->> 'event', before ->> 'status', after ->> 'status', reason, booking_id = $1), '; ' ORDER BY actor)
		  FROM operator_actions`, b.booking).Scan(&acts))
	require.Equal(t, "ada retry_event evt_a parked pending the booking was restored t; bob ignore_event evt_b parked ignored given back by hand t", acts)
	var state string
	require.NoError(t, b.Pool.QueryRow(t.Context(), `
		SELECT concat_ws(' ', attempts, due_at <= clock_timestamp(), finished_at IS NULL) FROM provider_events WHERE id = 'evt_a'`).Scan(&state))
	require.Equal(t, "0 t t", state)
}
