package main

import (
	"encoding/csv"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/cli"
	"holdfast/internal/finance"
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
	var r finance.Report
	require.NoError(t, json.Unmarshal([]byte(out), &r))
	require.False(t, r.Complete)
	require.NotEmpty(t, r.Incomplete)

	sim, err := stripesim.Start(t.Context(), "127.0.0.1:0", stripesim.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, sim.Close()) })
	b.provider = sim.URL
	code, out, errs = report()
	require.Equal(t, cli.ExitDone, code, errs)
	require.Contains(t, out, "Clean: every transaction is explained")
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
	code, out, errs = b.run(t, "", "import", file)
	require.Equal(t, cli.ExitDone, code, errs)
	require.Equal(t, "activity: 1 rows, 1 of them new\n", out)

	code, out, errs = report("--format", "csv")
	require.Equal(t, cli.ExitProblem, code, errs)
	rows, err := csv.NewReader(strings.NewReader(out)).ReadAll()
	require.NoError(t, err)
	require.Equal(t, finance.CSVHeader(), rows[0])
	require.Contains(t, out, finance.ChargedWithoutBooking)
	code, out, _ = b.run(t, "", "exceptions", "list")
	require.Equal(t, cli.ExitProblem, code)
	require.Contains(t, out, "txn_1")
	code, _, errs = b.run(t, "", append([]string{"sign-off", "--reason", "closed"}, period...)...)
	require.Equal(t, cli.ExitProblem, code)
	require.Contains(t, errs, "1 exceptions are open")
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
	require.Contains(t, out, "not checked: the fees of charge in USD")
	code, _, errs = b.run(t, "", "fees", "USD", "--bps", "150", "--fixed", "35")
	require.Equal(t, cli.ExitDone, code, errs)
	code, _, errs = b.run(t, "", append([]string{"sign-off", "--reason", "closed", "--actor", "ada"}, period...)...)
	require.Equal(t, cli.ExitDone, code, errs)
	code, out, _ = report()
	require.Equal(t, cli.ExitDone, code)
	require.Contains(t, out, "signed off by ada")

	code, _, errs = b.run(t, "", "report", "--from", day, "--to", day, "--zone", "Local")
	require.Equal(t, cli.ExitUsage, code, errs)
	code, _, _ = b.run(t, "", "report")
	require.Equal(t, cli.ExitUsage, code)
}
