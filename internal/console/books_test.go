package console_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"holdfast/internal/clients"
	"holdfast/internal/finance"
	"holdfast/internal/finance/history"
)

// demoMonth is a month of a provider's history in three currencies, with one of each kind that does not match, and its address.
func (b *bed) demoMonth() (query string) {
	b.Helper()
	today := time.Now().UTC()
	first := time.Date(today.Year(), today.Month()-2, 1, 0, 0, 0, 0, time.UTC)
	next := first.AddDate(0, 1, 0)
	dir := b.TempDir()
	config := history.Config{Seed: 3, Transactions: 900, From: first, Days: int(next.Sub(first) / (24 * time.Hour)), Planted: 1}
	require.NoError(b, history.Write(dir, config))
	conn, err := b.db.Pool.Acquire(b.Context())
	require.NoError(b, err)
	for _, table := range history.Tables() {
		f, err := os.Open(filepath.Join(dir, "ours", table.Name+".csv"))
		require.NoError(b, err)
		_, err = conn.Conn().PgConn().CopyFrom(b.Context(), f, "COPY "+table.Name+" ("+table.Columns+") FROM STDIN (FORMAT csv)")
		require.NoError(b, errors.Join(err, f.Close()), table.Name)
	}
	conn.Release()
	for _, name := range []string{"activity", "payouts", "payout_reconciliation"} {
		raw, err := os.ReadFile(filepath.Join(dir, "theirs", name+".csv"))
		require.NoError(b, err)
		if at := strings.LastIndex(string(raw), ",paid"); at >= 0 { // the last payout is on its way
			raw = []byte(string(raw[:at]) + ",in_transit" + string(raw[at+len(",paid"):]))
		}
		_, err = b.books.Import(b.Context(), finance.File{Name: name + ".csv", ReadSeeker: bytes.NewReader(raw), Covers: &finance.Window{From: first, To: next}})
		require.NoError(b, err, name)
	}
	return url.Values{"from": {first.Format(time.DateOnly)}, "to": {next.Format(time.DateOnly)}, "zone": {"UTC"}}.Encode()
}

// books is what finance does at the end of a month: look, follow a payout, note, sign off, take it home.
func books(b *bed) {
	month := b.demoMonth()
	bea := b.token("Bea "+evil, clients.Finance)
	p := b.tab()
	p.open("/")
	p.do(chromedp.SendKeys(chromedp.ID("token"), bea.Reveal()), chromedp.Submit(chromedp.ID("token")))
	p.until(`document.title.startsWith("Month")`)
	p.says("Nothing is stored of this period yet") // the last month that is over
	p.says("reconciler import FILE")
	p.judge("finance-empty")
	require.Equal(b, []string{"Month", "Exceptions"}, eval[[]string](p, `[...document.querySelectorAll("nav li")].map(e => e.innerText)`))

	p.open("/finance?" + month)
	p.until(`document.querySelector(".plot.days")`)
	p.says("Complete: all of the provider's books were read")
	p.says("What to do: Have each exception explained")
	b.pageIsCSV(p, bea.Reveal(), month)
	v := b.visitor()
	v.post("/sign-in", "token", bea.Reveal())
	items, err := b.books.Items(b.Context(), finance.Filter{Status: "open"})
	require.NoError(b, err)
	require.NotEmpty(b, items)
	one := "/finance/exceptions/" + jsonText(items[0].ID)
	a := v.post(one+"/note", append(v.fields(one), "note", "asked the provider "+evil, "owner", evil)...)
	require.Equal(b, http.StatusOK, a.status, a.body)
	require.Equal(b, http.StatusForbidden, v.post(one+"/sign-off", "reason", "no token").status)
	require.Equal(b, http.StatusUnprocessableEntity, v.post(one+"/sign-off", v.fields(one)...).status)
	require.Equal(b, http.StatusConflict, v.post("/finance/sign-off", append(v.fields(one), append(formOf(month), "reason", "closed")...)...).status, "exceptions are open")
	p.open("/finance?" + month)
	p.judge("finance-month")
	p.open("/finance/exceptions")
	p.judge("finance-exceptions")
	p.open(one)
	p.judge("finance-exception")
	payout := scan[string](b, `SELECT id FROM payouts ORDER BY id LIMIT 1`)
	p.open("/finance/payouts/" + payout)
	require.Positive(b, eval[int](p, `document.querySelectorAll("td[data-label=Booking] code").length`), "it leads to bookings")
	p.judge("finance-payout")

	csrf := v.fields(one)
	for _, i := range items {
		a := v.post("/finance/exceptions/"+jsonText(i.ID)+"/sign-off", append(csrf, "reason", "looked at "+evil)...)
		require.Equal(b, http.StatusOK, a.status, a.body)
	}
	b.broken(func() {
		p.open("/finance?" + month)
		p.says("checks do not hold. Nothing that is booked can be changed")
		require.Zero(b, eval[int](p, `document.querySelectorAll("#reason").length`), "no form that would be refused")
		require.Equal(b, http.StatusConflict, v.post("/finance/sign-off", append(csrf, append(formOf(month), "reason", "closed")...)...).status)
	})
	p.open("/finance?" + month)
	p.do(chromedp.SendKeys(chromedp.ID("reason"), "the month is closed "+evil), chromedp.Submit(chromedp.ID("reason")))
	p.until(`document.querySelector(".said") && document.body.innerText.includes("It is locked")`)
	p.judge("finance-signed")
	require.Equal(b, "Bea "+evil+": the month is closed "+evil, scan[string](b, `SELECT signed_off_by || ': ' || reason FROM finance_periods`))
	require.Equal(b, len(items), scan[int](b, `SELECT count(*) FROM operator_actions WHERE action = 'finance_sign_off' AND actor = $1`, "Bea "+evil))
	b.eachToTheirOwn(v)
}

// broken does something while our ledger has an entry that the provider has not.
func (b *bed) broken(meanwhile func()) {
	b.Helper()
	entry := func(debit, credit string) {
		_, err := b.db.Pool.Exec(b.Context(), `
			INSERT INTO ledger_entries (origin, kind, debit, credit, amount, currency, about, occurred_at)
			SELECT 'provider', 'adjustment', $1, $2, 7, currency, id, created_at FROM provider_transactions WHERE category = 'charge' ORDER BY id LIMIT 1`, debit, credit)
		require.NoError(b, err)
	}
	entry("provider_balance", "adjustments")
	meanwhile()
	entry("adjustments", "provider_balance")
}

// pageIsCSV compares what the page shows with what the file of the same period says.
func (b *bed) pageIsCSV(p *tab, token, month string) {
	b.Helper()
	v := b.visitor()
	v.post("/sign-in", "token", token)
	a := v.get("/finance/report.csv?" + month)
	require.Equal(b, http.StatusOK, a.status, a.body)
	require.Contains(b, a.header.Get("Content-Disposition"), ".csv")
	rows, err := csv.NewReader(strings.NewReader(a.body)).ReadAll()
	require.NoError(b, err)
	require.Equal(b, finance.CSVHeader(), rows[0])
	want, days, pending := map[string]int64{}, map[string][]int64{}, [][]string{}
	names := map[string]string{
		"opening": "Opening balance", "gross": "Gross", "fees": "Fees", "refunds": "Refunds", "disputes": "Disputes", "other": "Other", "activity": "Net",
		"payouts": "Payouts", "closing": "Closing balance",
	}
	for _, cells := range rows[1:] {
		r := map[string]string{}
		for i, name := range rows[0] {
			r[name] = cells[i]
		}
		switch r["record"] {
		case "balance":
			want[names[r["kind"]]+" "+r["currency"]] = digits(r["net"])
		case "day":
			of := r["day"] + " " + r["currency"]
			if days[of] == nil {
				days[of] = make([]int64, 6)
			}
			sums := days[of]
			column := map[string]int{"charge": 0, "refund": 2, "refund_failure": 2, "dispute": 3, "dispute_reversal": 3}
			at, known := column[r["kind"]]
			if !known {
				at = 4
			}
			if r["kind"] != "payout" && r["kind"] != "payout_reversal" {
				sums[at] += digits(r["amount"])
				sums[1] -= digits(r["fee"])
				sums[5] += digits(r["net"])
			}
		case "pending":
			pending = append(pending, []string{r["kind"] + " " + r["id"], r["amount"] + r["currency"], r["why"]})
		}
	}
	require.Len(b, want, 27, "nine lines of three currencies")
	const plain = `const plain = e => e.textContent.replace(/[\s\u00a0\u202f]+/g, " ").trim(), number = e => plain(e).replace(/[ .]/g, "").replace("\u2212", "-") * 1;`
	shown := eval[map[string]int64](p, `(() => { `+plain+` const t = document.querySelector(".statement"), heads = [...t.querySelectorAll("thead th")].slice(1).map(plain);
		return Object.fromEntries([...t.querySelectorAll("tbody tr")].flatMap(r => [...r.querySelectorAll("td")].map((c, i) =>
			[r.querySelector("th").firstChild.textContent.trim() + " " + heads[i], number(c)]))) })()`)
	require.Equal(b, want, shown, "the statement")
	require.Equal(b, days, eval[map[string][]int64](p, `(() => { `+plain+` return Object.fromEntries([...document.querySelectorAll("section[aria-labelledby^=days-]")].flatMap(s =>
		[...s.querySelectorAll("details tbody tr")].map(r => [plain(r.querySelector("th")) + " " + plain(s.querySelector("h3")), [...r.querySelectorAll("td")].map(number)]))) })()`),
		"the days, as under the plots")
	require.Len(b, pending, 1)
	require.Equal(b, pending, eval[[][]string](p, `(() => { `+plain+` return [...document.querySelectorAll("table[aria-labelledby=pending] tbody tr")].map(r =>
		[plain(r.querySelector(".kind")) + " " + plain(r.querySelector(".id")), plain(r.querySelector("[data-label=Amount]")).replaceAll(" ", ""), plain(r.querySelector("[data-label=Why]")).replace(/\.$/, "").replace(/^./, c => c.toLowerCase())]) })()`),
		"what is pending, and why")
}

// digits is an amount in minor units: every amount of a currency has as many digits after the point.
func digits(major string) int64 {
	n, _ := strconv.ParseInt(strings.ReplaceAll(major, ".", ""), 10, 64) // a wrong one will be found to differ
	return n
}

// eachToTheirOwn: finance is refused on operators' pages, and operators on finance's.
func (b *bed) eachToTheirOwn(bea *visitor) {
	b.Helper()
	for _, at := range []string{"/effects?stuck=1", "/audit", "/pauses", "/requests", "/runs", "/runbook", "/find?q=x"} {
		a := bea.get(at)
		require.Equal(b, http.StatusForbidden, a.status, at)
		require.NotContains(b, a.body, ">Audit</a>", at)
	}
	olga := b.signedIn(b.operator)
	for _, at := range []string{"/finance", "/finance/report.csv", "/finance/exceptions", "/finance/exceptions/1", "/finance/payouts/po_1"} {
		a := olga.get(at)
		require.Equal(b, http.StatusForbidden, a.status, at)
		require.NotContains(b, a.body, ">Exceptions</a>", at)
	}
	require.Equal(b, http.StatusForbidden, olga.post("/finance/sign-off", olga.fields("/pauses")...).status)
	require.Equal(b, http.StatusBadRequest, bea.get("/finance?from=x&to=y&zone=z").status)
	for _, id := range []string{"po_none", "%00", "%FF", "po_1?after=%C3%A4"} {
		require.Equal(b, http.StatusNotFound, bea.get("/finance/payouts/"+id).status, id)
	}
	for _, period := range []string{"from=0000-01-01&to=0000-01-02", "from=2001-01-01&to=2100-01-01"} {
		require.Equal(b, http.StatusBadRequest, bea.get("/finance?zone=UTC&"+period).status, period)
	}
	require.Equal(b, http.StatusNotFound, bea.get("/finance/exceptions/999999").status)
}

func jsonText(v any) string {
	text, _ := json.Marshal(v) // cannot fail: a number
	return string(text)
}

// formOf is an address' query as the fields of a form.
func formOf(query string) (fields []string) {
	values, _ := url.ParseQuery(query) // made by this test
	for name := range values {
		fields = append(fields, name, values.Get(name))
	}
	return fields
}
