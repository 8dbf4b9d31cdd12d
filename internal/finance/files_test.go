package finance_test

import (
	"bytes"
	"encoding/csv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/internal/finance"
	"holdfast/internal/testdb"
)

const activityHeader = "balance_transaction_id,created_utc,available_on_utc,currency,gross,fee,net,reporting_category,source_id,customer_facing_amount," +
	"customer_facing_currency,payment_intent_id\n"

// A file with anything wrong in it stores nothing, and the line is named.
func TestImport_ABrokenFileStoresNothing(t *testing.T) {
	t.Parallel()
	db := testdb.New(t)
	d := finance.New(db.Pool, nil, finance.Config{}, quiet())
	good := "txn_1,2027-03-01 10:00:00,2027-03-03 00:00:00,usd,10.00,0.50,9.50,charge,ch_1,10.00,usd,pi_1\n"
	for name, tt := range map[string]struct{ text, says string }{
		"empty":                        {"", "line 1"},
		"no such report":               {"a,b\n1,2\n", "line 1: this is no activity report"},
		"the same column twice":        {"net," + activityHeader, "line 1"},
		"too few cells":                {activityHeader + good + "txn_2,2027\n", "line 3"},
		"an open quote":                {activityHeader + good + `"txn_2,` + "\n", "line 3"},
		"net is not gross less fee":    {activityHeader + good + strings.Replace(good, "9.50", "9.51", 1), "line 3: net is not gross less fee"},
		"three decimals of dollars":    {activityHeader + good + good + strings.Replace(good, "10.00,0.50", "10.001,0.50", 1), "line 4: gross"},
		"a comma for a point":          {activityHeader + strings.Replace(good, "10.00,0.50", `"10,00",0.50`, 1), "line 2: gross"},
		"no currency":                  {activityHeader + strings.Replace(good, "usd,10", "xxx,10", 1), "line 2: currency"},
		"a local time":                 {activityHeader + strings.Replace(good, "2027-03-01 10:00:00", "01.03.2027", 1), "line 2: created_utc"},
		"more than a number can hold":  {activityHeader + strings.Replace(good, "10.00,0.50", "99999999999999999999.00,0.50", 1), "line 2: gross"},
		"a zero byte":                  {activityHeader + strings.Replace(good, "ch_1", "ch\x00", 1), "line 2: source_id"},
		"another encoding":             {activityHeader + good + strings.Replace(good, "ch_1", "ch\xff", 1), "line 3: source_id"},
		"an id without end":            {activityHeader + strings.Replace(good, "txn_1", strings.Repeat("x", 1001), 1), "line 2: balance_transaction_id"},
		"a formula where a sum should": {activityHeader + strings.Replace(good, "10.00,0.50", "=1+1,0.50", 1), "line 2: gross"},
	} {
		_, err := d.Import(t.Context(), finance.File{Name: name, ReadSeeker: strings.NewReader(tt.text)})
		bad := &finance.FileError{}
		require.ErrorAs(t, err, &bad, name)
		require.ErrorContains(t, err, tt.says, name)
	}
	day := finance.Window{From: time.Date(2027, 3, 2, 0, 0, 0, 0, time.UTC), To: time.Date(2027, 3, 3, 0, 0, 0, 0, time.UTC)}
	_, err := d.Import(t.Context(), finance.File{Name: "another day", ReadSeeker: strings.NewReader(activityHeader + good), Covers: &day})
	require.ErrorContains(t, err, "txn_1")
	var stored int
	require.NoError(t, db.Pool.QueryRow(t.Context(), `SELECT count(*) FROM provider_transactions`).Scan(&stored))
	require.Zero(t, stored)

	for range 2 {
		_, err = d.Import(t.Context(), finance.File{Name: "good", ReadSeeker: strings.NewReader(activityHeader + good)})
		require.NoError(t, err)
	}
	got, err := d.Import(t.Context(), finance.File{Name: "other", ReadSeeker: strings.NewReader(activityHeader + strings.Replace(good, "0.50,9.50", "0.60,9.40", 1))})
	require.NoError(t, err)
	require.Equal(t, []any{int64(1), int64(0), int64(1), "txn_1"}, []any{got.Rows, got.NewRows, got.Differs, got.FirstBad})
	var fee int64
	require.NoError(t, db.Pool.QueryRow(t.Context(), `SELECT fee FROM provider_transactions`).Scan(&fee))
	require.EqualValues(t, 50, fee, "what is stored stays")
}

// Nothing that somebody has written becomes a formula in a spreadsheet, and numbers stay numbers.
func TestWriteCSV_NeutralisesFormulas(t *testing.T) {
	t.Parallel()
	amount, currency := int64(-1234), "KWD"
	r := finance.Report{Period: finance.Period{From: "2027-03-01", To: "2027-04-01", Zone: "UTC"}, Exceptions: []finance.Item{{
		Kind: finance.FeeDiffers, About: "=HYPERLINK(\"http://x\")", Note: "@SUM(A1)", Owner: "+1", Why: "-cmd|' /C calc'!A0", Amount: &amount, Currency: &currency, Status: "open",
	}}}
	var out bytes.Buffer
	require.NoError(t, r.WriteCSV(&out))
	rows, err := csv.NewReader(&out).ReadAll()
	require.NoError(t, err)
	require.Equal(t, finance.CSVHeader(), rows[0])
	require.Len(t, rows, 4, "what it is, what it comes to, and the exception")
	cells := map[string]string{}
	for i, name := range rows[0] {
		cells[name] = rows[3][i]
	}
	require.Equal(t, []string{"'=HYPERLINK(\"http://x\")", "'@SUM(A1)", "+1", "'-cmd|' /C calc'!A0", "-1.234"},
		[]string{cells["id"], cells["note"], cells["owner"], cells["why"], cells["amount"]})
}

// A day is that of the zone that is named, on the days on which its clocks change, too.
func TestWindow(t *testing.T) {
	t.Parallel()
	d := finance.New(testdb.New(t).Pool, nil, finance.Config{}, quiet())
	for _, tt := range []struct {
		period finance.Period
		hours  float64
		from   string
	}{
		{finance.Period{From: "2027-03-28", To: "2027-03-29", Zone: "Europe/Berlin"}, 23, "2027-03-27T23:00:00Z"},
		{finance.Period{From: "2027-10-31", To: "2027-11-01", Zone: "Europe/Berlin"}, 25, "2027-10-30T22:00:00Z"},
		{finance.Period{From: "2027-10-03", To: "2027-10-04", Zone: "Australia/Lord_Howe"}, 23.5, "2027-10-02T13:30:00Z"},
		{finance.Period{From: "2027-03-28", To: "2027-03-29", Zone: "Asia/Kathmandu"}, 24, "2027-03-27T18:15:00Z"},
	} {
		w, err := d.Window(t.Context(), tt.period)
		require.NoError(t, err)
		require.InDelta(t, tt.hours, w.To.Sub(w.From).Hours(), 0, tt.period)
		require.Equal(t, tt.from, w.From.Format(time.RFC3339))
	}
	for _, bad := range []finance.Period{
		{From: "2027-03-01", To: "2027-03-01", Zone: "UTC"},
		{From: "2027-02-30", To: "2027-03-01", Zone: "UTC"},
		{From: "2027-03-01", To: "2027-03-02", Zone: "Local"},
		{From: "2027-03-01", To: "2027-03-02", Zone: ""},
		{From: "2027-03-01", To: "2027-03-02", Zone: "Mars/Base"},
		{From: "yesterday", To: "today", Zone: "UTC"},
	} {
		_, err := d.Window(t.Context(), bad)
		require.Error(t, err, bad)
	}
}

// The provider's list of payouts says what arrived: a payout takes from the balance and what came back of one adds to it; what went out with
// a payout does not hold the payout itself.
func TestImport_PayoutsAreSignedAsTheyMoveTheBalance(t *testing.T) {
	t.Parallel()
	db := testdb.New(t)
	d := finance.New(db.Pool, nil, finance.Config{}, quiet())
	load := func(text string) error {
		_, err := d.Import(t.Context(), finance.File{Name: "file", ReadSeeker: strings.NewReader(text)})
		return err
	}
	const header = "payout_id,effective_at_utc,currency,gross,fee,net,reporting_category,balance_transaction_id,payout_expected_arrival_date,payout_status\n"
	require.NoError(t, load(header+
		"po_1,2025-03-04 00:00:00,eur,9.50,0.00,9.50,payout,txn_2,2025-03-06,failed\n"+
		"po_1,2025-03-07 00:00:00,eur,-9.50,0.00,-9.50,payout_reversal,txn_3,2025-03-06 00:00:00,failed\n"+
		"po_2,2025-03-08 00:00:00,eur,-2.00,0.00,-2.00,payout,txn_4,,paid\n")) // the bank has covered what was missing
	require.NoError(t, load(strings.TrimSuffix(activityHeader, "\n")+",automatic_payout_id,trace_id\n"+
		"txn_1,2025-03-01 10:00:00,2025-03-03 00:00:00,eur,10.00,0.50,9.50,charge,ch_1,10.00,eur,pi_1,po_1,\n"+
		"txn_2,2025-03-04 00:00:00,2025-03-04 00:00:00,eur,-9.50,0.00,-9.50,payout,po_1,,,,po_1,\n"))
	require.ErrorContains(t, load(header+"po_3,2025-03-09 00:00:00,eur,10.00,0.10,9.90,payout,txn_5,,paid\n"), "line 2: net is not gross less fee")
	require.ErrorContains(t, load(header+"po_3,2025-03-09 00:00:00,eur,10.00,0.00,10.00,payout,txn_5,soon,paid\n"), "line 2: payout_expected_arrival_date")
	require.ErrorContains(t, load(strings.ReplaceAll(header, ",", ";")), "line 1: the columns are separated by semicolons")
	var told string
	require.NoError(t, db.Pool.QueryRow(t.Context(), `
		SELECT (SELECT string_agg(concat_ws(' ', id, category, source_id, net), ', ' ORDER BY id) FROM provider_transactions WHERE category <> 'charge') || '; ' ||
		       (SELECT string_agg(concat_ws(' ', id, amount, to_char(arrival_at AT TIME ZONE 'UTC', 'DD')), ', ' ORDER BY id) FROM payouts) || '; ' ||
		       (SELECT string_agg(transaction_id, ', ') FROM payout_transactions WHERE payout_id = 'po_1')`).Scan(&told))
	require.Equal(t, "txn_2 payout po_1 -950, txn_3 payout_reversal po_1 950, txn_4 payout po_2 200; po_1 950 06, po_2 -200 08; txn_1", told)
}

// A file proves what is missing only of an interval that is over, and only if it has all that is known of it.
func TestImport_CoversOnlyWhatItCanProve(t *testing.T) {
	t.Parallel()
	db := testdb.New(t)
	d := finance.New(db.Pool, nil, finance.Config{}, quiet())
	one := "txn_1,2025-03-01 10:00:00,2025-03-03 00:00:00,usd,10.00,0.50,9.50,charge,ch_1,10.00,usd,pi_1\n"
	other := strings.NewReplacer("txn_1", "txn_2", "usd", "eur", "_1", "_2").Replace(one)
	day := finance.Window{From: time.Date(2025, 3, 1, 0, 0, 0, 0, time.UTC), To: time.Date(2025, 3, 2, 0, 0, 0, 0, time.UTC)}
	load := func(w *finance.Window, rows string) error {
		_, err := d.Import(t.Context(), finance.File{Name: "M\xe4rz.csv", ReadSeeker: strings.NewReader(activityHeader + rows), Covers: w})
		return err
	}
	covered := func() (n int) {
		require.NoError(t, db.Pool.QueryRow(t.Context(), `SELECT count(*) FROM provider_transactions_covered WHERE windows <> '{}'`).Scan(&n))
		return n
	}
	invalid := &domain.ValidationError{}
	require.ErrorAs(t, load(&finance.Window{From: day.From, To: time.Now().AddDate(0, 0, 1)}, one), &invalid, "tomorrow is in no file")
	require.Equal(t, "to", invalid.Field)
	require.NoError(t, load(nil, one+other))
	require.ErrorIs(t, load(&day, one), finance.ErrIncomplete, "it is of one currency")
	require.Zero(t, covered())
	require.NoError(t, load(&day, one+other))
	require.Equal(t, 1, covered())

	bad := &finance.FileError{}
	require.ErrorAs(t, load(nil, strings.NewReplacer("txn_1", "txn_3", "10.00,0.50,9.50", "90000000000000000.00,0,90000000000000000.00").Replace(one)), &bad)
}
