package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/cli"
	"holdfast/internal/finance"
	"holdfast/internal/telemetry"
	"holdfast/payments/stripesim"
)

// The finance commands from a terminal: 0 clean, 1 exceptions, 2 wrong use, 3 could not tell; and what they print can be read by
// people, spreadsheets and programs.
func TestFinanceCommands(t *testing.T) {
	t.Parallel()
	b := setup(t)
	today := time.Now().UTC()
	period := []string{"--from", today.AddDate(0, 0, -3).Format(time.DateOnly), "--to", today.Format(time.DateOnly), "--zone", "Europe/Berlin"}
	report := func(args ...string) (int, string, string) {
		return b.run(t, "", append(append([]string{"report"}, period...), args...)...)
	}

	code, out, errs := report("--format", "json")
	require.Equal(t, cli.ExitUnknown, code, "nobody is there: %s", errs)
	var r finance.Shown
	require.NoError(t, json.Unmarshal([]byte(out), &r))
	require.False(t, r.Complete)
	require.Equal(t, finance.VerdictIncomplete, r.Verdict, "as over HTTP")
	require.Contains(t, out, `"payouts":[]`, "no list is null")
	require.NotEmpty(t, r.Incomplete)

	sim, err := stripesim.Start(t.Context(), "127.0.0.1:0", stripesim.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, sim.Close()) })
	b.provider = sim.URL
	code, out, errs = report()
	require.Equal(t, cli.ExitDone, code, errs)
	require.Contains(t, out, "CLEAN: every transaction of the period is explained.")
	require.Contains(t, out, "Europe/Berlin")

	day := today.AddDate(0, 0, -2).Format(time.DateOnly)
	file := filepath.Join(t.TempDir(), "activity.csv")
	write := func(lines ...string) {
		require.NoError(t, os.WriteFile(file, []byte("balance_transaction_id,created_utc,available_on_utc,currency,gross,fee,net,reporting_category,source_id,"+
			"customer_facing_amount,customer_facing_currency,payment_intent_id\n"+strings.Join(lines, "\n")+"\n"), 0o600))
	}
	write("txn_1," + day + " 10:00:00," + day + " 10:00:00,usd,10.00,0.50,9.50,charge,ch_1,10.00,usd,pi_1,")
	code, _, errs = b.run(t, "", "import", file)
	require.Equal(t, cli.ExitUsage, code)
	require.Contains(t, errs, "line 2")
	write("txn_1," + day + " 10:00:00," + day + " 10:00:00,usd,10.00,0.50,9.50,charge,ch_1,10.00,usd,pi_1")
	code, _, errs = b.run(t, "", "import", file, "--from", day, "--to", today.Format(time.DateOnly))
	require.Equal(t, cli.ExitUsage, code)
	require.Contains(t, errs, "--zone is missing")
	code, _, errs = b.run(t, "", "import", file, "--from", today.AddDate(0, 0, -9).Format(time.DateOnly), "--to", day, "--zone", "UTC")
	require.Equal(t, cli.ExitUsage, code)
	require.Contains(t, errs, "reconciler: from: transaction txn_1 was created at "+day+" 10:00:00 UTC, which is not between --from and --to")
	code, out, errs = b.run(t, "", "import", file)
	require.Equal(t, cli.ExitProblem, code, "the provider's API has just listed all of that day without it")
	require.Equal(t, "activity: 1 rows, 1 of them new\n", out)
	require.Contains(t, errs, "1 rows are new, such as txn_1, although the provider's API had listed all of that time without them")
	code, out, errs = b.run(t, "", "import", file)
	require.Equal(t, cli.ExitDone, code, errs)
	require.Equal(t, "activity: 1 rows, 0 of them new\n", out)

	code, out, errs = report("--format", "csv")
	require.Equal(t, cli.ExitProblem, code, errs)
	rows, err := csv.NewReader(strings.NewReader(out)).ReadAll()
	require.NoError(t, err)
	require.Equal(t, finance.CSVHeader(), rows[0])
	require.Contains(t, out, finance.ChargedWithoutBooking)
	code, out, _ = b.run(t, "", "exceptions", "list")
	require.Equal(t, cli.ExitProblem, code)
	require.Contains(t, out, "txn_1")
	for older, want := range map[string]int{"1h": cli.ExitProblem, "9000h": cli.ExitDone} {
		code, _, _ = b.run(t, "", "exceptions", "list", "--kind", finance.ChargedWithoutBooking, "--older", older)
		require.Equal(t, want, code, older)
	}
	code, _, _ = b.run(t, "", "exceptions", "list", "--kind", "charged without booking")
	require.Equal(t, cli.ExitProblem, code, "as the list shows it")
	code, _, errs = b.run(t, "", "exceptions", "list", "--kind", "odd")
	require.Equal(t, cli.ExitUsage, code)
	require.Contains(t, errs, finance.PeriodChanged)
	code, _, errs = b.run(t, "", append([]string{"sign-off", "--reason", "closed"}, period...)...)
	require.Equal(t, cli.ExitProblem, code)
	require.Contains(t, errs, "1 exception is open")
	code, _, _ = b.run(t, "", "exceptions", "note", "1", "--note", "a test charge", "--owner", "bea")
	require.Equal(t, cli.ExitDone, code)
	code, _, _ = b.run(t, "", "exceptions", "sign-off", "1", "--reason", "a test charge", "--actor", "ada")
	require.Equal(t, cli.ExitDone, code)
	code, _, errs = b.run(t, "", "exceptions", "sign-off", "1", "--reason", "again")
	require.Equal(t, cli.ExitProblem, code, errs)
	code, _, _ = b.run(t, "", "exceptions", "sign-off", "99", "--reason", "none")
	require.Equal(t, cli.ExitUsage, code)
	code, out, errs = report()
	require.Equal(t, cli.ExitDone, code, errs)
	require.Contains(t, out, "Not checked: the fees of charge in USD")
	code, out, errs = b.run(t, "", "fees", "usd", "--bps", "150", "--fixed", "35")
	require.Equal(t, cli.ExitDone, code, errs)
	require.Equal(t, "agreed for charge in USD from 2000-01-01 on: 1.5 % and 0.35 USD\n", out)
	code, out, errs = b.run(t, "", append([]string{"sign-off", "--reason", "closed", "--actor", "ada"}, period...)...)
	require.Equal(t, cli.ExitDone, code, errs)
	require.Equal(t, "signed off: "+period[1]+" to "+today.AddDate(0, 0, -1).Format(time.DateOnly)+", both days included, days of Europe/Berlin\n", out)
	code, out, _ = report()
	require.Equal(t, cli.ExitDone, code)
	require.Contains(t, out, "Signed off: ")

	code, _, errs = b.run(t, "", "report", "--from", day, "--to", day, "--zone", "Local")
	require.Equal(t, cli.ExitUsage, code, errs)
	code, _, _ = b.run(t, "", "report")
	require.Equal(t, cli.ExitUsage, code)
}

// What does not match is found by the reconciler itself, before anybody asks for a report.
func TestOnceComparesTheBooks(t *testing.T) {
	t.Parallel()
	b := setup(t)
	sim, err := stripesim.Start(t.Context(), "127.0.0.1:0", stripesim.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, sim.Close()) })
	b.provider = sim.URL
	today := time.Now().UTC()
	day, next := today.AddDate(0, 0, -2).Format(time.DateOnly), today.AddDate(0, 0, -1).Format(time.DateOnly)
	file := filepath.Join(t.TempDir(), "activity.csv")
	require.NoError(t, os.WriteFile(file, []byte("balance_transaction_id,created_utc,available_on_utc,currency,gross,fee,net,reporting_category,source_id,"+
		"customer_facing_amount,customer_facing_currency,payment_intent_id\ntxn_1,"+day+" 10:00:00,"+day+" 10:00:00,usd,10.00,0.50,9.50,charge,ch_1,10.00,usd,pi_1\n"), 0o600))
	code, _, errs := b.run(t, "", "import", file, "--from", day, "--to", next, "--zone", "UTC")
	require.Equal(t, cli.ExitDone, code, errs)
	code, _, _ = b.run(t, "", "exceptions", "list")
	require.Equal(t, cli.ExitDone, code)
	code, _, errs = b.run(t, "", "once")
	require.Equal(t, cli.ExitDone, code, errs)
	code, out, _ := b.run(t, "", "exceptions", "list", "--json")
	require.Equal(t, cli.ExitProblem, code)
	var items []finance.Item
	require.NoError(t, json.Unmarshal([]byte(out), &items))
	require.Len(t, items, 1)
	require.Equal(t, []string{finance.ChargedWithoutBooking, "txn_1"}, []string{items[0].Kind, items[0].About})
}

// A run that could not read all of the provider's books says so, exits 3 and accuses nobody, in whatever format; once they can be read, the
// same command finds what is there.
func TestReport_AnIncompleteRunAccusesNobody(t *testing.T) {
	t.Parallel()
	b := setup(t)
	sim, err := stripesim.Start(t.Context(), "127.0.0.1:0", stripesim.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, sim.Close()) })
	b.provider = sim.URL
	ask, err := http.NewRequestWithContext(t.Context(), http.MethodPost, sim.URL+"/v1/payment_intents", strings.NewReader(
		"amount=9000&currency=eur&payment_method=pm_card_visa&confirm=true&payment_method_types[0]=card"))
	require.NoError(t, err)
	ask.SetBasicAuth("sk_test_reconciler", "")
	ask.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	ask.Header.Set("Idempotency-Key", "a stranger's")
	answer, err := http.DefaultClient.Do(ask)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, http.StatusOK, answer.StatusCode)
	charge := sim.Ledger().Charges[0].ID
	for range 100 { // the second page is of one row
		_, err := sim.Act(stripesim.Action{Action: "refund", Charge: charge, Amount: 1})
		require.NoError(t, err)
	}
	now := time.Now().UTC()
	require.Eventually(t, func() bool { return time.Now().Unix() > now.Unix() }, time.Minute, 10*time.Millisecond)
	report := func(format string) (int, string, string) {
		return b.run(t, "", "report", "--from", now.AddDate(0, 0, -1).Format(time.DateOnly), "--to", now.AddDate(0, 0, 1).Format(time.DateOnly), "--zone", "UTC",
			"--ingest-lag", "1ms", "--format", format)
	}
	for _, tt := range []struct {
		fault        stripesim.Fault
		format, says string
	}{
		{stripesim.Fault{Fault: "list_page_error"}, "table", "INCOMPLETE"},
		{stripesim.Fault{Fault: "list_page_error", Nth: 2}, "csv", "incomplete,"},
		{stripesim.Fault{Fault: "list_page_empty", Nth: 2}, "json", `"complete":false`},
	} {
		tt.fault.Operation, tt.fault.Times = "balance_transactions.list", -1
		sim.AddFault(tt.fault)
		code, out, errs := report(tt.format)
		sim.ClearFaults()
		require.Equal(t, cli.ExitUnknown, code, "%s %s", out, errs)
		require.Contains(t, out, tt.says)
		var items int
		require.NoError(t, b.Pool.QueryRow(t.Context(), `SELECT count(*) FROM reconciliation_items`).Scan(&items))
		require.Zero(t, items)
	}
	code, out, errs := report("json")
	require.Equal(t, cli.ExitProblem, code, errs)
	var r finance.Shown
	require.NoError(t, json.Unmarshal([]byte(out), &r))
	require.True(t, r.Complete)
	require.Equal(t, []any{finance.VerdictExceptions, 101}, []any{r.Verdict, r.Open})
}

// A long run shows how far it is: in place at a terminal, as structured lines elsewhere.
func TestProgress(t *testing.T) {
	t.Parallel()
	for _, terminal := range []bool{true, false} {
		var out bytes.Buffer
		p := newProgress(cli.IO{Err: &out}, telemetry.NewLogger(&out, slog.LevelInfo, "reconciler"))
		require.False(t, p.terminal)
		p.terminal, p.every, p.next = terminal, 0, time.Time{}
		p.tell(finance.Progress{Stage: "read", Rows: 3000, Pages: 30, Done: 0.25, Taken: time.Minute})
		if terminal {
			require.Equal(t, "\r\x1b[Kread: 3000 rows, 30 pages, 50 rows/s, 25 %, 3m0s left", out.String())
			p.tell(finance.Progress{Stage: "read", Rows: 12000, Pages: 120, Done: 1, Taken: 4 * time.Minute})
			require.True(t, strings.HasSuffix(out.String(), "\r\x1b[K"), "nothing of it is left")
			continue
		}
		var line map[string]any
		require.NoError(t, json.Unmarshal(out.Bytes(), &line))
		require.Equal(t, []any{"progress", "read", 3000.0, 30.0, 50.0, 25.0, "3m0s"},
			[]any{line["msg"], line["stage"], line["rows"], line["pages"], line["rows_per_second"], line["done_percent"], line["left"]})
	}
}
