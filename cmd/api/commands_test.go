package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/internal/cli"
	"holdfast/internal/clients"
	"holdfast/internal/testdb"
	"holdfast/migrations"
)

func TestMain(m *testing.M) { testdb.Main(m) }

// result is what one run of the program left.
type result struct {
	code     int
	out, err string
}

// run runs the program with a database and more environment, written NAME=value.
func run(t *testing.T, databaseURL string, args []string, env ...string) result {
	t.Helper()
	values := map[string]string{"DATABASE_URL": databaseURL}
	for _, e := range env {
		name, value, _ := strings.Cut(e, "=")
		values[name] = value
	}
	var out, errs bytes.Buffer
	code := program().Run(t.Context(), args, func(name string) string { return values[name] }, cli.IO{Out: &out, Err: &errs})
	return result{code, out.String(), errs.String()}
}

func words(s string) []string { return strings.Fields(s) }

func (r result) into(t *testing.T, v any) {
	t.Helper()
	require.Equal(t, cli.ExitDone, r.code, r.err)
	dec := json.NewDecoder(strings.NewReader(r.out))
	dec.DisallowUnknownFields()
	require.NoError(t, dec.Decode(v), r.out)
}

func TestTokens(t *testing.T) {
	t.Parallel()
	db := testdb.New(t)
	empty := run(t, db.URL, words("token list"))
	require.Equal(t, cli.ExitDone, empty.code)
	require.Contains(t, empty.out, "api token create --client NAME")

	var made createdToken
	run(t, db.URL, words("token create --client acme --scope bookings:write,bookings:read --expires-in 720h --label laptop --json")).into(t, &made)
	require.Equal(t, "acme", made.Client)
	require.Equal(t, []clients.Scope{clients.BookingsRead, clients.BookingsWrite}, made.Scopes)
	p, err := clients.New(db.Pool).Authenticate(t.Context(), domain.Secret(made.Token))
	require.NoError(t, err)
	require.Equal(t, made.ClientID, p.ClientID)
	require.Equal(t, made.ID, p.TokenID)

	shown := run(t, db.URL, words("token create --client acme --scope operator --scope finance"))
	require.Regexp(t, `^hf_[\w-]{43}\n`, shown.out)
	require.Contains(t, shown.out, "api token revoke ")
	table := run(t, db.URL, words("token list"))
	require.Contains(t, table.out, "bookings:read,bookings:write")
	require.Contains(t, table.out, "laptop")
	require.NotContains(t, table.out, "hf_", "tokens cannot be shown again")

	revoked := run(t, db.URL, []string{"token", "revoke", made.ID.String()})
	require.Equal(t, cli.ExitDone, revoked.code, revoked.err)
	_, err = clients.New(db.Pool).Authenticate(t.Context(), domain.Secret(made.Token))
	require.ErrorIs(t, err, clients.ErrUnauthenticated)
	var list struct {
		Tokens []listedToken `json:"tokens"`
	}
	run(t, db.URL, words("token list --json")).into(t, &list)
	require.Len(t, list.Tokens, 2)
	require.Equal(t, clients.Active, list.Tokens[0].Status)
	require.Equal(t, clients.Revoked, list.Tokens[1].Status)

	unknown := run(t, db.URL, []string{"token", "revoke", domain.NewID[clients.TokenID]().String()})
	require.Equal(t, cli.ExitUsage, unknown.code)
	wrong := run(t, db.URL, []string{"token", "revoke", made.Token})
	require.Equal(t, cli.ExitUsage, wrong.code)
	require.NotContains(t, wrong.err, made.Token, "a token given for its id is not repeated")
}

func TestResources(t *testing.T) {
	t.Parallel()
	db := testdb.New(t)
	require.Contains(t, run(t, db.URL, words("resource list")).out, "api resource create")
	var made resource
	create := append(words("resource create --time-zone Europe/Berlin --places 3 --unit-minutes 60 --price 2500 --currency eur --json --name"), "Court 1")
	run(t, db.URL, create, "HOLD=2s").into(t, &made)
	require.Equal(t, resource{
		ID: made.ID, Name: "Court 1", TimeZone: "Europe/Berlin", Places: 3, UnitMinutes: 60, Price: 2500, Currency: "EUR", HoldSeconds: 2,
		Refunds: domain.DefaultRefundPolicy(),
	}, made)
	run(t, db.URL, append(create, "--hold", "20m"), "HOLD=2s").into(t, &made)
	require.InDelta(t, 1200, made.HoldSeconds, 0, "the flag counts more than the environment")
	run(t, db.URL, create).into(t, &made)
	require.InDelta(t, 900, made.HoldSeconds, 0, "15 minutes by default")
	run(t, db.URL, append(create, words("--refund 48h=100 --refund 24h=50")...)).into(t, &made)
	require.Equal(t, domain.RefundPolicy{{HoursBefore: 48, Percent: 100}, {HoursBefore: 24, Percent: 50}}, made.Refunds)
	run(t, db.URL, append(create, words("--refund none")...)).into(t, &made)
	require.Equal(t, domain.RefundPolicy{}, made.Refunds)
	var list struct {
		Resources []resource `json:"resources"`
	}
	run(t, db.URL, words("resource list --json")).into(t, &list)
	require.Len(t, list.Resources, 5)
	require.Equal(t, made, list.Resources[4])
	table := run(t, db.URL, words("resource list")).out
	require.Contains(t, table, "48h=100 24h=50")
	require.Contains(t, table, "none")
	require.Contains(t, table, "Court 1")
	require.Contains(t, table, "2500 EUR")

	for _, wrong := range []string{
		"--places 0", "--time-zone Europe/Bern", "--currency euro", "--currency xxz", "--price 0", "--hold 20h", "--unit-minutes 0",
		"--price -1", "--price 19.999", "--price 1000000000000000", "--price 100000000", "--currency iqd", "--currency isk --price 1000000",
		"--refund 48h", "--refund 48=100", "--refund 2d=100", "--refund 48h=101", "--refund 48h=all", "--refund -1h=100", "--refund 24h=50 --refund 48h=100", "--refund none --refund 48h=1",
	} {
		r := run(t, db.URL, append(create, words(wrong)...))
		require.Equal(t, cli.ExitUsage, r.code, wrong)
		require.NotEmpty(t, r.err)
		require.Empty(t, r.out)
	}
	require.Contains(t, run(t, db.URL, append(create, "--currency=xxz")).err, `"XXZ" is no currency of ISO 4217`)
	_, err := db.Pool.Exec(t.Context(), `
		INSERT INTO resources (id, name, time_zone, places, unit_minutes, price, currency, hold)
		SELECT gen_random_uuid(), 'many', 'UTC', 1, 60, 100, 'EUR', '15 min' FROM generate_series(1, 1995)`)
	require.NoError(t, err)
	run(t, db.URL, words("resource list --json")).into(t, &list)
	require.Len(t, list.Resources, 2000, "two pages, and no third")
	named := words("resource create --time-zone UTC --price 1 --currency eur --name")
	require.Equal(t, cli.ExitUsage, run(t, db.URL, append(named, "a\x1b[31mb")).code, "a control character")
	require.Equal(t, cli.ExitDone, run(t, db.URL, append(named, "a\u202eb")).code)
	require.NotContains(t, run(t, db.URL, words("resource list")).out, "\u202e", "a name does not turn the terminal's lines around")
}

func TestMinimums(t *testing.T) {
	t.Parallel()
	db := testdb.New(t)
	set := run(t, db.URL, words("minimums set --currency eur --amount 60 --as-of 2025-03-01"))
	require.Equal(t, cli.ExitDone, set.code, set.err)
	require.Equal(t, "the minimum is 60 EUR (minor units) from 2025-03-01 on\n", set.out)
	require.Equal(t, cli.ExitDone, run(t, db.URL, words("minimums set --currency EUR --amount 70 --as-of 2999-01-01")).code)
	var list struct {
		Minimums []minimum `json:"minimums"`
	}
	run(t, db.URL, words("minimums list --json")).into(t, &list)
	var eur []minimum
	for _, m := range list.Minimums {
		if m.Currency == "EUR" {
			eur = append(eur, m)
		}
	}
	require.Equal(t, []minimum{{"EUR", 70, "2999-01-01", false}, {"EUR", 60, "2025-03-01", true}, {"EUR", 50, "2024-01-01", false}}, eur)
	require.Regexp(t, `EUR +60 +2025-03-01 +now`, run(t, db.URL, words("minimums list")).out)
	for _, wrong := range []string{
		"--currency eur --amount -1 --as-of 2025-03-01", "--currency iqd --amount 1 --as-of 2025-03-01", "--currency eur --amount 0.50 --as-of 2025-03-01",
		"--currency eur --amount 50 --as-of 1.3.2025", "--currency eur --amount 50", "--amount 50 --as-of 2025-03-01",
	} {
		r := run(t, db.URL, append(words("minimums set"), words(wrong)...))
		require.Equal(t, cli.ExitUsage, r.code, wrong)
		require.NotEmpty(t, r.err)
	}
}

func TestMigrate(t *testing.T) {
	t.Parallel()
	db := testdb.New(t)
	require.Equal(t, "up to date\n", run(t, db.URL, words("migrate")).out)

	_, err := db.Pool.Exec(t.Context(), `DROP SCHEMA public CASCADE; CREATE SCHEMA public`)
	require.NoError(t, err)
	for _, command := range []string{"token list", "resource list"} {
		r := run(t, db.URL, words(command))
		require.Equal(t, cli.ExitProblem, r.code)
		require.Contains(t, r.err, "run: api migrate")
	}
	applied := run(t, db.URL, words("migrate"))
	require.Equal(t, cli.ExitDone, applied.code, applied.err)
	version, err := migrations.Version()
	require.NoError(t, err)
	require.Contains(t, applied.out, fmt.Sprintf("applied %04d ", version))
	require.Contains(t, applied.out, "applied 0002 0002_clients.sql")
	require.Equal(t, "up to date\n", run(t, db.URL, words("migrate")).out)
}

func TestAllProblemsAreToldAtOnce(t *testing.T) {
	t.Parallel()
	r := run(t, "", words("serve --db-max-conns many"), "HTTP_ADDR=nowhere", "REQUEST_TIMEOUT=soon", "IDEMPOTENCY_RETENTION=-1s", "LOG_LEVEL=loud")
	require.Equal(t, cli.ExitUsage, r.code)
	for _, problem := range []string{"DATABASE_URL", "DB_MAX_CONNS", "HTTP_ADDR", "REQUEST_TIMEOUT", "IDEMPOTENCY_RETENTION", "LOG_LEVEL"} {
		require.Contains(t, r.err, problem)
	}
	r = run(t, "", words("token create --client a --scope admin --expires-in never"))
	require.Equal(t, cli.ExitUsage, r.code)
	for _, problem := range []string{"DATABASE_URL", "--scope", "--expires-in"} {
		require.Contains(t, r.err, problem)
	}
}

func TestWrongUse(t *testing.T) {
	t.Parallel()
	for _, args := range []string{"", "fly", "token", "token create", "token create --nope", "migrate now", "serve --http-addr"} {
		r := run(t, "postgres://127.0.0.1:1/x", words(args))
		require.Equal(t, cli.ExitUsage, r.code, args)
		require.NotEmpty(t, r.err, args)
	}
}

func TestHelp(t *testing.T) {
	t.Parallel()
	for _, command := range []string{
		"", "serve", "migrate", "token", "token create", "token list", "token revoke", "resource", "resource create", "resource list",
		"minimums", "minimums set", "minimums list",
	} {
		r := run(t, "", append(words(command), "--help"))
		require.Equal(t, cli.ExitDone, r.code, command)
		require.Contains(t, r.out, "Usage: api "+command)
		require.Empty(t, r.err)
	}
	for _, setting := range []string{
		"$HTTP_ADDR", "127.0.0.1:8080", "$METRICS_ADDR", "$LOG_LEVEL", "$IDEMPOTENCY_RETENTION", "$DB_MAX_CONNS", "$DRAIN_TIMEOUT", "$REQUEST_TIMEOUT",
	} {
		require.Contains(t, run(t, "", words("serve --help")).out, setting)
	}
}

// G9, incident 17: a password reaches neither output nor exit, however broken the URL is.
func TestIncident17_PasswordStaysSecret(t *testing.T) {
	t.Parallel()
	for url, code := range map[string]int{
		"postgres://u:sentinel%25%3A@127.0.0.1:1/x": cli.ExitUnknown, // refused
		"postgres://u:sent%inel@127.0.0.1:1/x":      cli.ExitUsage,   // cannot be parsed
		"postgres://u:sentinel@127.0.0.1:port/x":    cli.ExitUsage,
		"host=127.0.0.1 port=1 password='sentinel":  cli.ExitUsage,
	} {
		for _, command := range []string{"token list", "resource list", "migrate"} {
			r := run(t, url, words(command))
			require.Equal(t, code, r.code, "%s %s: %s", command, url, r.err)
			require.NotContains(t, r.out+r.err, "sent")
		}
	}
}

func TestCancelledCommandCouldNotTell(t *testing.T) {
	t.Parallel()
	db := testdb.New(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out, errs bytes.Buffer
	code := program().Run(ctx, words("token list"), func(string) string { return db.URL }, cli.IO{Out: &out, Err: &errs})
	require.Equal(t, cli.ExitUnknown, code, errs.String())
}
