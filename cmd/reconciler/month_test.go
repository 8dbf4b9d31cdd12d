package main

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/internal/cli"
	"holdfast/internal/finance"
	"holdfast/internal/testdb"
)

var update = flag.Bool("update", false, "write the golden files anew")

// march are the bookings of a small month: when they were charged, what our books have, and whether the event of it went out.
// What the provider has of them, and of others, is in testdata/month, as its reports tell it.
var march = []struct {
	n, amount int
	currency  string
	at        string
}{
	{1, 4000, "EUR", "2025-02-25 10:00:00Z"},
	{2, 2500, "EUR", "2025-03-03 08:15:00Z"},
	{3, 5000, "JPY", "2025-03-05 17:40:00Z"},
	{4, 6000, "EUR", "2025-03-07 09:05:00Z"},
	{5, 5000, "EUR", "2025-03-11 07:30:00Z"},
	{6, 3000, "EUR", "2025-03-12 12:00:00Z"}, // the provider has 35.00
	{7, 8000, "EUR", "2025-03-13 12:00:00Z"},
	{8, 4500, "EUR", "2025-03-14 12:00:00Z"},
	{9, 2200, "EUR", "2025-03-16 12:00:00Z"},
	{10, 7000, "EUR", "2025-03-18 12:00:00Z"},
	{11, 3300, "EUR", "2025-03-19 12:00:00Z"},
	{12, 2700, "EUR", "2025-03-22 12:00:00Z"}, // the provider has none
	{13, 1200, "EUR", "2025-03-24 12:00:00Z"},
	{14, 2500, "EUR", "2025-03-30 21:30:00Z"}, // 23:30 in Berlin, on the day on which its clocks change
	{15, 1500, "EUR", "2025-02-01 12:00:00Z"}, // before anything was listed
}

// theMonth has that month in the books of both sides, but for what does not match.
func theMonth(t *testing.T) *testBundle {
	t.Helper()
	b := &testBundle{DB: testdb.New(t)}
	for _, x := range march {
		b.exec(t, `
			INSERT INTO bookings (id, client_id, resource_id, during, quantity, amount, currency, customer_name, customer_email, status, hold_expires_at, created_at, updated_at)
			SELECT ('00000001-0000-7000-8000-' || lpad($1::int::text, 12, '0'))::uuid, gen_random_uuid(), gen_random_uuid(), '[2030-01-01 10:00Z,2030-01-01 11:00Z)', 1, $2, $3,
			       'Ada', 'ada@example.org', 'confirmed', $4, $4::timestamptz - interval '5 seconds', $4`, x.n, x.amount, x.currency, x.at)
		b.exec(t, `
			INSERT INTO payments (id, booking_id, amount, currency, amount_received, payment_method, provider_intent_id, status, created_at, updated_at)
			SELECT replace(id::text, '00000001-', '00000002-')::uuid, id, amount, currency, amount, 'pm', 'pi_' || lpad($1::int::text, 2, '0'), 'succeeded', created_at, updated_at
			  FROM bookings WHERE id::text LIKE '%' || lpad($1::int::text, 12, '0')`, x.n)
	}
	for _, r := range []struct {
		n, amount      int
		id, reason, at string
	}{
		{4, 2000, "re_04", "requested", "2025-03-10 11:00:00Z"},
		{8, 1500, "re_08", "dashboard", "2025-03-15 09:00:00Z"},
		{9, 2200, "re_09", "requested", "2025-03-17 12:00:00Z"}, // the provider has none
		{15, 1500, "re_15", "requested", "2025-03-28 12:00:00Z"},
	} {
		b.exec(t, `
			WITH p AS (SELECT id, booking_id, currency FROM payments WHERE id::text LIKE '%' || lpad($1::int::text, 12, '0')),
			     effect AS (INSERT INTO outbox (id, booking_id, kind, status, due_at, created_at, finished_at)
			                SELECT replace(id::text, '00000002-', '00000004-')::uuid, booking_id, 'refund', 'done', $5, $5, $5 FROM p WHERE $3 <> 'dashboard' RETURNING id)
			INSERT INTO refunds (id, payment_id, effect_id, amount, currency, reason, requested_by, request_reason, status, provider_refund_id, settled_at, created_at, updated_at)
			SELECT replace(id::text, '00000002-', '00000003-')::uuid, id, (SELECT id FROM effect), $2, currency, $3, 'ada', 'asked', 'succeeded', $4, $5, $5, $5 FROM p`,
			r.n, r.amount, r.reason, r.id, r.at)
	}
	b.exec(t, `
		INSERT INTO disputes (id, payment_id, amount, currency, reason, status, withdrawn, opened_at, created_at, updated_at)
		SELECT 'dp_10', id, amount, currency, 'fraudulent', 'lost', true, '2025-03-20 12:00Z', '2025-03-20 12:00Z', '2025-03-20 12:00Z'
		  FROM payments WHERE provider_intent_id = 'pi_10'`)
	b.exec(t, `
		INSERT INTO outbox (id, booking_id, kind, event_type, event_seq, status, due_at, created_at)
		SELECT '00000005-0000-7000-8000-000000000013', booking_id, 'publish', 'confirmed', 2, 'parked', updated_at, updated_at FROM payments WHERE provider_intent_id = 'pi_13'`)
	code, _, errs := b.run(t, "", "fees", "EUR", "--bps", "150", "--fixed", "25")
	require.Equal(t, cli.ExitDone, code, errs)
	return b
}

// read imports the provider's reports of the month and the days before it.
func (b *testBundle) read(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		code, _, errs := b.run(t, "", "import", filepath.Join("testdata", "month", name+".csv"), "--from", "2025-02-20", "--to", "2025-04-01", "--zone", "Europe/Berlin")
		require.Equal(t, cli.ExitDone, code, errs)
	}
}

// TestAMonthWithoutItsPayouts: the report of all activity has none. Whoever has read nothing else is told so by each of the formats and by the
// exit code, and cannot sign the month.
func TestAMonthWithoutItsPayouts(t *testing.T) {
	t.Parallel()
	b := theMonth(t)
	b.read(t, "activity")
	period := []string{"--from", "2025-03-01", "--to", "2025-04-01", "--zone", "Europe/Berlin"}
	report := func(format string, want int) string {
		code, out, errs := b.run(t, "", append([]string{"report", "--format", format}, period...)...)
		require.Equal(t, want, code, errs)
		return out
	}
	b.isAsWritten(t, "report_without_payouts.golden", report("table", cli.ExitUnknown))
	const why = "the payouts of 2025-02-28 23:00 UTC to 2025-03-31 22:00 UTC were not read, and the report of all activity has none"
	require.Regexp(t, `\nverdict,.*,false,.*,incomplete,.*payouts were not in what was read`, report("csv", cli.ExitUnknown))
	require.Regexp(t, `\nincomplete,.*`+why, report("csv", cli.ExitUnknown))
	var r finance.Shown
	require.NoError(t, json.Unmarshal([]byte(report("json", cli.ExitUnknown)), &r))
	require.Equal(t, []any{finance.VerdictIncomplete, true, []string{why}}, []any{r.Verdict, r.PayoutsUnread, r.Incomplete})
	require.NotZero(t, r.Open, "all else was compared")
	code, _, errs := b.run(t, "", append([]string{"sign-off", "--reason", "closed"}, period...)...)
	require.Equal(t, cli.ExitUnknown, code)
	require.Contains(t, errs, "import the provider's report payouts")
	code, _, errs = b.run(t, "", "import", filepath.Join("testdata", "month", "payouts.csv"), "--from", "2025-03-14", "--to", "2025-04-01", "--zone", "Europe/Berlin")
	require.Equal(t, cli.ExitUsage, code, "it has one of the 12th")
	require.Contains(t, errs, "txn_po_march_1")
	b.read(t, "payouts", "payout_reconciliation")
	report("table", cli.ExitProblem)
}

// TestTheMonthAsFinanceReadsIt: what is printed of a small month is what a person has read and found to be clear.
func TestTheMonthAsFinanceReadsIt(t *testing.T) {
	t.Parallel()
	b := theMonth(t)
	b.read(t, "activity", "payouts", "payout_reconciliation")
	period := []string{"--from", "2025-03-01", "--to", "2025-04-01", "--zone", "Europe/Berlin"}
	for _, c := range []struct {
		golden string
		args   []string
	}{
		{"report.golden", append([]string{"report"}, period...)},
		{"report.csv.golden", append([]string{"report", "--format", "csv"}, period...)},
		{"exceptions.golden", []string{"exceptions", "list"}},
	} {
		code, out, errs := b.run(t, "", c.args...)
		require.Equal(t, cli.ExitProblem, code, errs)
		require.Empty(t, errs)
		b.isAsWritten(t, c.golden, out)
	}
}

// isAsWritten compares a text with its golden file, but for what the time of day decides.
func (b *testBundle) isAsWritten(t *testing.T, golden, text string) {
	t.Helper()
	for pattern, as := range map[string]string{
		`as of 20[-0-9]{8} [:0-9]{8} UTC`:        "as of (now)",
		`(Europe/Berlin),20[-0-9]{8}T[:0-9]{8}Z`: "$1,(now)",
		`(,exceptions,,,)20[-0-9]{8}T[:0-9]{8}Z`: "$1(now)",
		`,(open|signed_off|closed),\d+,`:         ",$1,(age),",
		`AGE +HAPPENED`:                          "AGE    HAPPENED",
		`\d+ d +`:                                "(age)  ",
	} {
		text = regexp.MustCompile(pattern).ReplaceAllString(text, as)
	}
	file := filepath.Join("testdata", golden)
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), text, "go test ./cmd/reconciler -run %s -update writes it anew", t.Name())
}
