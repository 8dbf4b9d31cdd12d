package stripesim_test

import (
	"encoding/csv"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/payments/stripesim"
)

// report runs one over [from, to) and answers its rows, by column.
func (b *testBundle) report(t *testing.T, kind string, from, to time.Time, extra ...string) []map[string]string {
	t.Helper()
	form := query(append([]string{
		"report_type", kind, "parameters[interval_start]", fmt.Sprint(from.Unix()), "parameters[interval_end]", fmt.Sprint(to.Unix()),
	}, extra...)...)
	run := b.post(t, "/v1/reporting/report_runs", fmt.Sprint(len(b.Journal(0))), form)
	require.Equal(t, []any{http.StatusOK, "pending"}, []any{run.status, run.body["status"]}, run.raw)
	done := b.get(t, "/v1/reporting/report_runs/"+run.id())
	require.Equal(t, "succeeded", done.body["status"], done.raw)
	result, _ := done.body["result"].(map[string]any)
	address, _ := result["url"].(string)
	path, ours := strings.CutPrefix(address, b.URL)
	require.True(t, ours, address)
	contents := b.get(t, path)
	require.Equal(t, "text/csv", contents.header.Get("Content-Type"))
	lines, err := csv.NewReader(strings.NewReader(contents.raw)).ReadAll()
	require.NoError(t, err)
	rows := []map[string]string{}
	for _, line := range lines[1:] {
		row := map[string]string{}
		for i, column := range lines[0] {
			row[column] = line[i]
		}
		rows = append(rows, row)
	}
	return rows
}

// The reports tell what the ledger has, in major units: each movement once, payouts apart, in the interval that excludes its end.
func TestReports(t *testing.T) {
	t.Parallel()
	b := setup(t)
	start := b.Now().Truncate(time.Second)
	id := b.paid(t, "pm_card_visa")
	yen := b.post(t, "/v1/payment_intents", "yen", "amount=12345&currency=jpy&payment_method_types[]=card&payment_method=pm_card_visa&confirm=true")
	require.Equal(t, "succeeded", yen.body["status"], yen.raw)
	b.refund(t, "r", "payment_intent="+id+"&amount=5&metadata[refund_id]=r1")
	b.paid(t, "pm_card_createDispute")
	middle := b.Advance(72 * time.Hour).Truncate(time.Second)
	po := b.act(t, stripesim.Action{Action: "create_payout"}).Object
	end := b.Advance(48 * time.Hour).Truncate(time.Second)

	rows := b.report(t, "balance_change_from_activity.itemized.3", start, end, "parameters[timezone]", "Asia/Tokyo")
	moves := b.Ledger().BalanceTransactions
	require.Len(t, rows, 5)
	for i, row := range rows {
		require.Equal(t, []string{moves[i].ID, moves[i].ReportingCategory, moves[i].Source}, []string{row["balance_transaction_id"], row["reporting_category"], row["source_id"]})
		utc, err := time.Parse(time.DateTime, row["created_utc"])
		require.NoError(t, err)
		require.Equal(t, utc.Add(9*time.Hour).Format(time.DateTime), row["created"])
		require.Equal(t, po, row["automatic_payout_id"])
	}
	require.Equal(t, []string{"20.00", "0.55", "19.45", "eur"}, []string{rows[0]["gross"], rows[0]["fee"], rows[0]["net"], rows[0]["currency"]})
	require.Equal(t, []string{"76.54", "12345", "jpy"}, []string{rows[1]["gross"], rows[1]["customer_facing_amount"], rows[1]["customer_facing_currency"]})
	require.Equal(t, []string{"-0.05", "0.00", "-0.05"}, []string{rows[2]["gross"], rows[2]["fee"], rows[2]["net"]})
	require.Equal(t, []string{"-20.00", "15.00", "-35.00", "fraudulent"}, []string{rows[4]["gross"], rows[4]["fee"], rows[4]["net"], rows[4]["dispute_reason"]})

	chosen := b.report(t, "balance_change_from_activity.itemized.3", start, end, "parameters[columns][0]", "net", "parameters[columns][1]",
		"refund_metadata[refund_id]", "parameters[columns][2]", "payment_metadata[booking_id]", "parameters[reporting_category]", "refund")
	require.Len(t, chosen, 1)
	require.Len(t, chosen[0], 3)
	require.Equal(t, "r1", chosen[0]["refund_metadata[refund_id]"])
	require.NotEmpty(t, chosen[0]["payment_metadata[booking_id]"])

	require.Empty(t, b.report(t, "balance_change_from_activity.itemized.3", start.Add(-time.Hour), start), "the end is not in it")
	require.Empty(t, b.report(t, "balance_change_from_activity.itemized.3", middle, end), "a payout is no activity")
	require.Len(t, b.report(t, "payout_reconciliation.itemized.5", middle, end), 5)
	require.Empty(t, b.report(t, "payout_reconciliation.itemized.5", start, middle), "it is counted when it arrives")

	sums := b.report(t, "balance_change_from_activity.summary.1", start, end)
	require.Equal(t, map[string]string{"reporting_category": "charge", "currency": "eur", "count": "3", "gross": "116.54", "fee": "2.50", "net": "114.04"}, sums[0])
	lines := map[string]string{}
	for _, row := range b.report(t, "balance.summary.1", start, end) {
		lines[row["category"]] = row["net_amount"]
	}
	require.Equal(t, map[string]string{
		"starting_balance": "0.00", "activity_gross": "96.49", "activity_fee": "-17.50", "activity": "78.99", "payouts": "-78.99", "ending_balance": "0.00",
	}, lines)
	require.Contains(t, b.told(t, "reporting.*"), "reporting.report_run.succeeded")
	require.Len(t, ids(b.get(t, "/v1/reporting/report_runs?limit=2")), 2)
}

func TestReportsThatAreRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const good = "report_type=balance.summary.1&parameters[interval_start]=100&parameters[interval_end]=200"
	for form, param := range map[string]string{
		"report_type=moon.1": "report_type",
		"report_type=balance.summary.1&parameters[interval_start]=200":                                     "parameters[interval_end]",
		"report_type=balance.summary.1&parameters[interval_start]=200&parameters[interval_end]=200":        "parameters[interval_end]",
		"report_type=balance.summary.1&parameters[interval_start]=200&parameters[interval_end]=9999999999": "parameters[interval_end]",
		good + "&parameters[timezone]=Local":                                                               "parameters[timezone]",
		good + "&parameters[timezone]=Atlantis":                                                            "parameters[timezone]",
		good + "&parameters[columns][]=colour":                                                             "parameters[columns]",
		good + "&parameters[payout]=po_1":                                                                  "parameters[payout]",
		good + "&parameters[colour]=red":                                                                   "parameters[colour]",
	} {
		r := b.post(t, "/v1/reporting/report_runs", form, form)
		require.Equal(t, []any{http.StatusBadRequest, param}, []any{r.status, r.errorField("param")}, form)
	}
	for _, path := range []string{"/v1/reporting/report_runs/frr_unknown", "/v1/files/file_unknown", "/v1/files/file_unknown/contents"} {
		require.Equal(t, http.StatusNotFound, b.get(t, path).status, path)
	}
}
