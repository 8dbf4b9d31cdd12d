package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/internal/cli"
	"holdfast/internal/testdb"
)

func TestMain(m *testing.M) { testdb.Main(m) }

// operatorBundle is a database with one booking, and a terminal to work on it.
type operatorBundle struct {
	url     string
	pool    *pgxpool.Pool
	booking domain.BookingID
	charge  domain.EffectID
	held    domain.EffectID
}

func setup(t *testing.T) *operatorBundle {
	t.Helper()
	db := testdb.New(t)
	b := &operatorBundle{
		url: db.URL, pool: db.Pool, booking: domain.NewID[domain.BookingID](),
		charge: domain.NewID[domain.EffectID](), held: domain.NewID[domain.EffectID](),
	}
	resource := domain.NewID[domain.ResourceID]()
	_, err := db.Pool.Exec(t.Context(), `
		INSERT INTO resources (id, name, time_zone, places, unit_minutes, price, currency, hold)
		VALUES ($1, 'Court 1', 'Europe/Berlin', 1, 60, 2500, 'EUR', '10 minutes')`, resource)
	require.NoError(t, err)
	_, err = db.Pool.Exec(t.Context(), `
		SELECT accept_booking(
			$1, '/v1/bookings', 'key', '\x00', 1::smallint, '24 hours', $2, $3, $4, $5, $6,
			'2030-05-01T10:00Z', '2030-05-01T11:00Z', 1, NULL, NULL, 'Ada', 'ada@example.com', 'pm_card_visa', '{}')`,
		domain.NewID[domain.ClientID](), b.booking, domain.NewID[domain.PaymentID](), b.charge, b.held, resource)
	require.NoError(t, err)
	b.spoil(t, `UPDATE outbox SET created_at = now() + interval '1 hour' WHERE id = $1`, b.held) // it has no job, and is missed after 15 s
	return b
}

// run runs the program and returns its exit code and what it wrote.
func (b *operatorBundle) run(t *testing.T, in io.Reader, args ...string) (code int, out, errs string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	getenv := func(name string) string { return map[string]string{"DATABASE_URL": b.url}[name] }
	code = program().Run(t.Context(), append([]string{"outbox"}, args...), getenv, cli.IO{In: in, Out: &stdout, Err: &stderr})
	return code, stdout.String(), stderr.String()
}

func (b *operatorBundle) spoil(t *testing.T, query string, args ...any) {
	t.Helper()
	_, err := b.pool.Exec(t.Context(), query, args...)
	require.NoError(t, err)
}

func (b *operatorBundle) audits(t *testing.T) (n int) {
	t.Helper()
	require.NoError(t, b.pool.QueryRow(t.Context(), `SELECT count(*) FROM operator_actions`).Scan(&n))
	return n
}

func decode(t *testing.T, text string) map[string]any {
	t.Helper()
	var m map[string]any
	require.NoError(t, json.Unmarshal([]byte(text), &m), text)
	return m
}

// TestReplayCommand (G7): accepted once with one audit row and exit 0; a finished effect is refused with exit 1 and none.
func TestReplayCommand(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.spoil(t, `UPDATE outbox SET status = 'parked', last_error = 'why' WHERE id = $1`, b.charge)
	code, out, errs := b.run(t, nil, "replay", b.charge.String(), "--reason", "customer called", "--yes", "--json", "--actor", "ada")
	require.Equal(t, cli.ExitDone, code, errs)
	answer := decode(t, out)
	require.Equal(t, true, answer["accepted"])
	require.Equal(t, 1, b.audits(t))
	require.Contains(t, out, `"status":"parked"`)
	require.Contains(t, out, `"status":"pending"`)

	b.spoil(t, `UPDATE outbox SET status = 'done', finished_at = now() WHERE id = $1`, b.charge)
	code, out, _ = b.run(t, nil, "replay", b.charge.String(), "--reason", "again", "--yes", "--json")
	require.Equal(t, cli.ExitProblem, code)
	answer = decode(t, out)
	require.Equal(t, false, answer["accepted"])
	require.NotEmpty(t, answer["refused"])
	require.Equal(t, 1, b.audits(t))
}

// TestReplayCommandAsksNobodyInAScript (G7): without --yes and without a terminal nothing happens.
func TestReplayCommandAsksNobodyInAScript(t *testing.T) {
	t.Parallel()
	b := setup(t)
	null, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer func() { require.NoError(t, null.Close()) }()
	for _, in := range []io.Reader{nil, strings.NewReader("y\n"), null} {
		code, _, errs := b.run(t, in, "replay", b.charge.String(), "--reason", "x")
		require.Equal(t, cli.ExitProblem, code)
		require.Contains(t, errs, "--yes")
	}
	require.Zero(t, b.audits(t))
}

// TestOutboxWrongUse: all problems at once, exit 2, nothing done.
func TestOutboxWrongUse(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, args := range [][]string{
		{"replay", b.charge.String(), "--yes"},
		{"replay", "x", "--reason", "y", "--yes"},
		{"replay", domain.NewID[domain.EffectID]().String(), "--reason", "y", "--yes"},
		{"show", domain.NewID[domain.EffectID]().String()},
		{"show", "x"},
		{"replay", b.booking.String(), "--reason", "y", "--yes"},
		{"list", "--booking", "x"},
		{"list", "--booking", domain.NewID[domain.BookingID]().String()},
		{"list", "--worker-dead-after", "0s"},
		{"list", "--kind", "x"},
		{"list", "--limit", "0"},
		{"list", "--after", "x"},
		{"list", "--stuck", "--status", "done"},
		{"pause", "cancel"},
		{"replay", "--reason", "y", "--yes"},
		{"replay", "--stuck", "--reason", "y", "--yes"},
		{"replay", "--stuck", "--cap", "10001", "--reason", "y", "--yes"},
		{"replay", "--cap", "1", "--reason", "y", "--yes"},
		{"replay", b.charge.String(), "--stuck", "--cap", "1", "--reason", "y", "--yes"},
		{"discard", "--older-than", "soon", "--cap", "1", "--reason", "y", "--yes"},
		{"republish", b.held.String(), "--reason", "y", "--yes"}, // no NATS_URL
		{"timeline", domain.NewID[domain.EffectID]().String()},
		{"runs", "show", "x"},
		{"runs", "resume", domain.NewID[domain.EffectID]().String()},
		{"approve", "x", "--reason", "y"},
		{"withdraw", domain.NewID[domain.EffectID]().String(), "--reason", "y"},
		{"pause"},
	} {
		code, _, errs := b.run(t, nil, args...)
		require.Equal(t, cli.ExitUsage, code, "%v", args)
		require.NotEmpty(t, errs)
	}
	require.Zero(t, b.audits(t))
	var stderr bytes.Buffer
	code := program().Run(t.Context(), []string{"outbox", "replay", "x"}, func(string) string { return "" }, cli.IO{Out: io.Discard, Err: &stderr})
	require.Equal(t, cli.ExitUsage, code)
	for _, want := range []string{"DATABASE_URL", "not an id", "--reason"} {
		require.Contains(t, stderr.String(), want)
	}
}

// TestListAndShowCommands: for people and for scripts; exit 1 as soon as something listed is stuck.
func TestListAndShowCommands(t *testing.T) {
	t.Parallel()
	b := setup(t)
	code, out, _ := b.run(t, nil, "list", "--stuck")
	require.Equal(t, cli.ExitDone, code)
	require.Equal(t, "nothing is stuck; what is on its way: worker outbox list\n", out)
	code, out, _ = b.run(t, nil, "list")
	require.Equal(t, cli.ExitDone, code)
	require.Contains(t, out, b.charge.String())
	require.Contains(t, out, "publish 1 held")

	b.spoil(t, `UPDATE outbox SET status = 'parked', last_error = E'a\tb\x1b[31m' WHERE id = $1`, b.charge)
	code, out, _ = b.run(t, nil, "list", "--stuck")
	require.Equal(t, cli.ExitProblem, code)
	require.Contains(t, out, "parked, needs a person")
	require.NotContains(t, out, "\x1b", "what a row says must not steer the terminal")
	code, out, _ = b.run(t, nil, "list", "--stuck", "--json")
	require.Equal(t, cli.ExitProblem, code)
	require.Len(t, decode(t, out)["rows"], 1)

	code, out, _ = b.run(t, nil, "show", b.charge.String())
	require.Equal(t, cli.ExitProblem, code)
	require.Contains(t, out, b.held.String())
	code, out, _ = b.run(t, nil, "show", b.held.String(), "--json")
	require.Equal(t, cli.ExitDone, code)
	require.Subset(t, decode(t, out)["effect"], map[string]any{"id": b.held.String(), "kind": "publish"})
}

// TestBookingCommands: at night people hold a booking's id.
func TestBookingCommands(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.spoil(t, `UPDATE outbox SET status = 'done', finished_at = now() WHERE id = $1`, b.charge)
	for _, args := range [][]string{{"list", "--booking", b.booking.String()}, {"show", b.booking.String()}, {"show", b.charge.String()}} {
		code, out, errs := b.run(t, nil, args...)
		require.Equal(t, cli.ExitDone, code, errs)
		require.Contains(t, out, b.charge.String())
		require.Contains(t, out, b.held.String())
		require.Contains(t, out, "done")
	}
	code, out, _ := b.run(t, nil, "list", "--booking", b.booking.String(), "--stuck")
	require.Equal(t, cli.ExitDone, code)
	require.Equal(t, "nothing like that; without the filters: worker outbox list\n", out)

	b.spoil(t, `UPDATE outbox SET status = 'parked' WHERE id = $1`, b.held)
	for id, want := range map[string]int{b.booking.String(): cli.ExitProblem, b.charge.String(): cli.ExitDone} {
		code, _, _ = b.run(t, nil, "show", id)
		require.Equal(t, want, code, "a booking is stuck if any of its effects is")
	}
	_, _, errs := b.run(t, nil, "replay", b.booking.String(), "--reason", "x", "--yes")
	require.Contains(t, errs, "list --booking")
}

// TestForgottenPauseCommands (G5, G7): a listing begins with what is paused; a replay says that it has to wait.
func TestForgottenPauseCommands(t *testing.T) {
	t.Parallel()
	b := setup(t)
	code, _, errs := b.run(t, nil, "pause", "charge", "--reason", "fraud\x1b[31m wave", "--actor", "ada")
	require.Equal(t, cli.ExitDone, code, errs)
	for _, args := range [][]string{{"list"}, {"list", "--stuck"}} {
		code, out, _ := b.run(t, nil, args...)
		require.Equal(t, cli.ExitDone, code)
		require.Regexp(t, `^charge is paused since .* by ada: fraud.* wave; worker outbox resume charge\n`, out)
		require.NotContains(t, out, "\x1b")
	}
	b.spoil(t, `UPDATE outbox SET created_at = now() - interval '6 minutes' WHERE id = $1`, b.charge)
	code, out, _ := b.run(t, nil, "list", "--stuck", "--json")
	require.Equal(t, cli.ExitProblem, code)
	page := decode(t, out)
	require.Len(t, page["rows"], 1)
	require.Len(t, page["pauses"], 1)
	require.NotContains(t, out, "\ncharge is paused", "JSON only")

	code, out, errs = b.run(t, nil, "replay", b.charge.String(), "--reason", "x", "--yes")
	require.Equal(t, cli.ExitDone, code, errs)
	require.Contains(t, out, "charge is paused, and a worker carries it out after the resume\n")
	b.run(t, nil, "resume", "charge")
	_, out, _ = b.run(t, nil, "replay", b.charge.String(), "--reason", "x", "--yes")
	require.Contains(t, out, "a worker carries it out now")
	_, out, _ = b.run(t, nil, "list", "--json")
	require.Equal(t, []any{}, decode(t, out)["pauses"])
}

// TestPauseCommands (G7): the switch is thrown once, with its audit row, and thrown back; a reason may be missing.
func TestPauseCommands(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, step := range []struct {
		args   []string
		audits int
		says   string
	}{
		{[]string{"pauses"}, 0, "nothing is paused"},
		{[]string{"resume", "charge"}, 0, "charge was not paused\n"},
		{[]string{"pause", "charge"}, 1, "charge is paused\n"},
		{[]string{"pauses"}, 1, "none given"},
		{[]string{"pause", "charge"}, 1, "charge is paused, as before\n"},
		{[]string{"pause", "charge", "--reason", "fraud"}, 2, "charge is paused, as before; the reason and who gave it are updated\n"},
		{[]string{"pauses"}, 2, "fraud"},
		{[]string{"resume", "charge", "--reason", "over", "--json"}, 3, `"changed":true`},
		{[]string{"resume", "charge", "--reason", "over", "--json"}, 3, `"changed":false`},
		{[]string{"pauses", "--json"}, 3, `"pauses":[]`},
	} {
		code, out, errs := b.run(t, nil, step.args...)
		require.Equal(t, cli.ExitDone, code, errs)
		require.Contains(t, out, step.says)
		require.Equal(t, step.audits, b.audits(t))
	}
}

// TestOutboxCouldNotTell: a database that is away is exit 3 and never "refused", told in one line that names where, and
// not the password (G9). One without a schema, or that does not exist, is a matter of set-up: exit 2, and what to do.
func TestOutboxCouldNotTell(t *testing.T) {
	t.Parallel()
	b := setup(t)
	empty := testdb.New(t)
	_, err := empty.Pool.Exec(t.Context(), `DROP SCHEMA public CASCADE; CREATE SCHEMA public`)
	require.NoError(t, err)
	for url, want := range map[string]struct {
		code int
		line string // or the end of one
	}{
		"postgres://user:s3cret@127.0.0.1:1/none?connect_timeout=1": {cli.ExitUnknown, "worker: cannot reach the database at 127.0.0.1:1\n"},
		strings.Replace(empty.URL, empty.Name, "none", 1):           {cli.ExitUsage, `refuses the connection: database "none" does not exist` + "\n"},
		empty.URL: {cli.ExitUsage, "worker: the database has no schema yet, or an older one; run: api migrate\n"},
	} {
		b.url = url
		for _, args := range [][]string{
			{"list"}, {"show", b.charge.String()}, {"replay", b.charge.String(), "--reason", "x", "--yes"}, {"pause", "charge"}, {"pauses"},
		} {
			code, out, errs := b.run(t, nil, args...)
			require.Equal(t, want.code, code, "%v", args)
			require.Empty(t, out)
			require.True(t, strings.HasSuffix(errs, want.line), errs)
			require.Equal(t, 1, strings.Count(errs, "\n"))
			require.NotContains(t, errs, "s3cret")
		}
	}
}
