package httpapi_test

import (
	"encoding/csv"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/internal/clients"
	"holdfast/internal/finance"
	"holdfast/internal/httpapi"
	"holdfast/payments"
)

const march = "?from=2025-03-01&to=2025-04-01&zone=Europe/Berlin"

// books is the API with a finance person's token, and a provider whose books of March 2025 hold one adjustment, which no booking
// explains, and a payout of it.
func books(t *testing.T) *bed {
	t.Helper()
	b := setup(t)
	b.token = b.newToken(t, "bea", clients.Finance)
	eur := func(n int64) domain.Money { return domain.Money{Amount: n, Currency: "EUR"} }
	day := time.Date(2025, 3, 10, 0, 0, 0, 0, time.UTC)
	require.NoError(t, payments.StoreTransactions(t.Context(), b.db.Pool, []payments.Transaction{
		{ID: "txn_1", Type: "adjustment", Category: "other_adjustment", Amount: eur(500), Net: 500, Created: day, Available: day},
		{ID: "txn_2", Type: "payout", Category: "payout", SourceID: "po_1", Amount: eur(-500), Net: -500, Created: day.AddDate(0, 0, 1), Available: day.AddDate(0, 0, 2)},
	}))
	b.exec(t, `INSERT INTO payouts (id, amount, currency, status, automatic, arrival_at, created_at, rows_read_at) VALUES
		('po_1', 500, 'EUR', 'paid', true, '2025-03-13Z', '2025-03-11Z', now())`)
	b.exec(t, `INSERT INTO payout_transactions VALUES ('po_1', 'txn_1')`)
	return b
}

func (b *bed) exec(t *testing.T, sql string, args ...any) {
	t.Helper()
	_, err := b.db.Pool.Exec(t.Context(), sql, args...)
	require.NoError(t, err)
}

// listed says that the provider's books of 2025 were listed whole.
func (b *bed) listed(t *testing.T) {
	t.Helper()
	b.exec(t, `INSERT INTO reconciliation_runs (id, kind, status, from_at, to_at, finished_at) VALUES ($1, 'read', 'complete', '2025-01-01Z', '2026-01-01Z', now())`, uuid.New())
}

// exception opens one whose owner is a formula.
func (b *bed) exception(t *testing.T) {
	t.Helper()
	run := uuid.New()
	b.exec(t, `INSERT INTO reconciliation_runs (id, kind) VALUES ($1, 'match')`, run)
	b.exec(t, `INSERT INTO reconciliation_items (kind, about, occurred_at, why, owner, run_id) VALUES ('unexplained', $1, '2025-03-10Z', 'why', 'finance', $2)`, run.String(), run)
}

// A month is closed by HTTP alone: what cannot be told never looks clean and cannot be signed; an exception is noted and signed
// off, and then the period; each is done once, whoever sends it again, and the audit has who.
func TestFinance_CloseAMonth(t *testing.T) {
	t.Parallel()
	b := books(t)
	dark := read[finance.Shown](t, b.get(t, "/v1/finance/report"+march))
	require.Equal(t, []any{"incomplete", false}, []any{dark.Verdict, dark.Complete})
	require.NotEmpty(t, dark.Incomplete)
	require.Empty(t, read[httpapi.FinanceExceptions](t, b.get(t, "/v1/finance/exceptions")).Exceptions, "nobody is accused")
	require.False(t, read[finance.PayoutList](t, b.get(t, "/v1/finance/payouts"+march)).Complete)
	b.put(t, "/v1/finance/sign-off"+march, `{"reason":"March is closed"}`).refused(t, http.StatusConflict, httpapi.CodeBooksIncomplete)

	b.listed(t)
	report := read[finance.Shown](t, b.get(t, "/v1/finance/report"+march))
	require.Equal(t, []any{"exceptions", 1, true}, []any{report.Verdict, report.Open, report.Complete})
	list := read[httpapi.FinanceExceptions](t, b.get(t, "/v1/finance/exceptions?status=open&kind=unexplained&limit=1"))
	require.Len(t, list.Exceptions, 1)
	require.Zero(t, list.Next)
	require.Equal(t, "txn_1", list.Exceptions[0].About)
	require.Empty(t, read[httpapi.FinanceExceptions](t, b.get(t, "/v1/finance/exceptions?status=closed")).Exceptions)
	b.put(t, "/v1/finance/sign-off"+march, `{"reason":"March is closed"}`).refused(t, http.StatusConflict, httpapi.CodeActRefused)

	const one = "/v1/finance/exceptions/1"
	for range 2 {
		noted := read[finance.Item](t, b.put(t, one+"/note", `{"note":"=1+1","owner":"bea"}`))
		require.Equal(t, []string{"=1+1", "bea"}, []string{noted.Note, noted.Owner})
	}
	sheet := b.send(t, http.MethodGet, "/v1/finance/report"+march, nil, b.bearer(), "Accept: text/csv")
	require.Equal(t, http.StatusOK, sheet.status, "%s", sheet.body)
	require.Equal(t, `attachment; filename="finance-2025-03-01-2025-04-01.csv"`, sheet.header.Get("Content-Disposition"))
	lines, err := csv.NewReader(strings.NewReader(string(sheet.body))).ReadAll()
	require.NoError(t, err)
	require.Equal(t, finance.CSVHeader(), lines[0])
	require.Contains(t, string(sheet.body), ",'=1+1,", "no formula")
	require.Equal(t, "text/csv; charset=utf-8; header=present", b.get(t, "/v1/finance/report"+march+"&format=csv").header.Get("Content-Type"))

	for range 2 {
		require.Equal(t, "signed_off", read[finance.Item](t, b.put(t, one+"/sign-off", `{"reason":"a gift"}`)).Status)
	}
	require.Equal(t, "bea", b.put(t, one+"/sign-off", `{"reason":"another"}`).refused(t, http.StatusConflict, httpapi.CodeActRefused).By)
	b.put(t, one+"/note", `{"note":"too late"}`).refused(t, http.StatusConflict, httpapi.CodeActRefused)
	report = read[finance.Shown](t, b.get(t, "/v1/finance/report"+march))
	require.Equal(t, "clean", report.Verdict, "%+v %+v", report.Identities, report.Exceptions)

	signed := read[finance.SignedPeriod](t, b.put(t, "/v1/finance/sign-off"+march, `{"reason":"March is closed"}`))
	require.Equal(t, signed, read[finance.SignedPeriod](t, b.put(t, "/v1/finance/sign-off"+march, `{"reason":"March is closed"}`)))
	b.token = b.newToken(t, "carl", clients.Finance)
	require.Equal(t, "bea", b.put(t, "/v1/finance/sign-off"+march, `{"reason":"March is closed"}`).refused(t, http.StatusConflict, httpapi.CodeActRefused).By)
	require.Equal(t, 3, b.count(t, `SELECT count(*) FROM operator_actions WHERE actor = 'bea' AND action LIKE 'finance%'`), "a note, two signatures")
}

// From a payout down to its transactions, page by page.
func TestFinance_Payouts(t *testing.T) {
	t.Parallel()
	b := books(t)
	b.listed(t)
	list := read[finance.PayoutList](t, b.get(t, "/v1/finance/payouts"+march))
	require.True(t, list.Complete)
	require.Len(t, list.Payouts, 1)
	b.exec(t, `INSERT INTO provider_transactions (id, type, category, source_id, intent_id, amount, fee, net, currency, created_at, available_at) VALUES
		('txn_3', 'charge', 'charge', 'ch_1', 'pi_1', 2500, 100, 2400, 'EUR', '2025-03-10Z', '2025-03-12Z')`)
	b.exec(t, `INSERT INTO payout_transactions VALUES ('po_1', 'txn_3')`)
	require.Equal(t, http.StatusCreated, b.bookAs(t).status)
	var booking uuid.UUID
	require.NoError(t, b.db.Pool.QueryRow(t.Context(), `UPDATE payments SET provider_intent_id = 'pi_1' RETURNING booking_id`).Scan(&booking))
	first := read[httpapi.FinancePayoutDetail](t, b.get(t, "/v1/finance/payouts/po_1?limit=1"))
	require.Equal(t, []any{"po_1", int64(2), true, "txn_1"}, []any{first.Payout.ID, first.Payout.Rows, first.Listed, first.Next})
	second := read[httpapi.FinancePayoutDetail](t, b.get(t, "/v1/finance/payouts/po_1?limit=1&after="+first.Next))
	require.Empty(t, second.Next)
	require.Equal(t, []any{"txn_3", booking, int64(2400)}, []any{second.Rows[0].ID, *second.Rows[0].BookingID, second.Rows[0].Net})
}

// bookAs makes a booking as a customer.
func (b *bed) bookAs(t *testing.T) answer {
	t.Helper()
	bea := b.token
	defer func() { b.token = bea }()
	b.token = b.newToken(t, "shop", clients.BookingsWrite)
	return b.book(t, "one", b.body())
}

func financeRequests() []deskRequest {
	const why = `{"reason":"why not"}`
	return []deskRequest{
		{"GET", "/v1/finance/report" + march, "", ""},
		{"GET", "/v1/finance/exceptions", "", ""},
		{"GET", "/v1/finance/exceptions/1", "", ""},
		{"PUT", "/v1/finance/exceptions/1/note", `{"note":"n"}`, ""},
		{"PUT", "/v1/finance/exceptions/1/sign-off", why, ""},
		{"PUT", "/v1/finance/sign-off" + march, why, ""},
		{"GET", "/v1/finance/payouts" + march, "", ""},
		{"GET", "/v1/finance/payouts/po_1", "", ""},
	}
}

// The desk is finance's alone: operators and customers get 403. Whatever else is sent is refused, and never 500.
func TestFinance_Refusals(t *testing.T) {
	t.Parallel()
	b := setup(t)
	finance := b.newToken(t, "bea", clients.Finance)
	for _, scope := range clients.Scopes() {
		b.token = finance
		if scope != clients.Finance {
			b.token = b.newToken(t, "other", scope)
		}
		for _, r := range financeRequests() {
			require.Equal(t, scope != clients.Finance, b.ask(t, r).status == http.StatusForbidden, "%s %s with %s", r.method, r.path, scope)
		}
	}
	b.token = finance
	for _, query := range []string{
		"", "?from=2025-03-01&to=2025-04-01", "?from=x&to=2025-04-01&zone=UTC", "?from=2025-02-30&to=2025-04-01&zone=UTC", "?from=0000-01-01&to=0000-02-01&zone=UTC",
		"?from=2025-04-01&to=2025-03-01&zone=UTC", "?from=2025-03-01&to=2025-03-01&zone=UTC", "?from=2025-03-01&to=2027-03-01&zone=UTC", "?from=9999-12-30&to=9999-12-31&zone=UTC",
		"?from=2025-03-01&to=2025-04-01&zone=", "?from=2025-03-01&to=2025-04-01&zone=Local", "?from=2025-03-01&to=2025-04-01&zone=Mars/Olympus", "?from=2025-03-01&to=2025-04-01&zone=../../etc/passwd",
		"?from=2025-03-01&to=2025-04-01&zone=%00", "?from=2025-03-01&to=2025-04-01&zone=%ff", "?from=2025-03-01&to=2025-04-01&zone=zone.tab", "?from=2025-03-01T00:00:00Z&to=2025-04-01&zone=UTC",
		march + "&zone=UTC", march + "&x=1",
	} {
		for _, path := range []string{"/v1/finance/report", "/v1/finance/payouts"} {
			b.get(t, path+query).refused(t, http.StatusUnprocessableEntity, httpapi.CodeValidationFailed)
		}
		b.put(t, "/v1/finance/sign-off"+query, `{"reason":"why not"}`).refused(t, http.StatusUnprocessableEntity, httpapi.CodeValidationFailed)
	}
	b.get(t, "/v1/finance/report"+march+"&format=xml").refused(t, http.StatusUnprocessableEntity, httpapi.CodeValidationFailed)
	for _, query := range []string{"status=x", "kind=x", "limit=0", "limit=1001", "after=-1", "after=x", "after=99999999999999999999"} {
		b.get(t, "/v1/finance/exceptions?"+query).refused(t, http.StatusUnprocessableEntity, httpapi.CodeValidationFailed)
	}
	for _, id := range []string{"0", "-1", "x", "01", "99999999999999999999", "%00", "9223372036854775807"} {
		b.get(t, "/v1/finance/exceptions/"+id).refused(t, http.StatusNotFound, httpapi.CodeNotFound)
		b.put(t, "/v1/finance/exceptions/"+id+"/note", `{"note":"n"}`).refused(t, http.StatusNotFound, httpapi.CodeNotFound)
	}
	for _, id := range []string{"po_2", "%00", "%ff", strings.Repeat("a", 5000)} {
		b.get(t, "/v1/finance/payouts/"+id).refused(t, http.StatusNotFound, httpapi.CodeNotFound)
	}
	b.get(t, "/v1/finance/payouts/po_1?after=%00").refused(t, http.StatusUnprocessableEntity, httpapi.CodeValidationFailed)
	b.exception(t)
	for _, body := range []string{`{}`, `[]`, `{"note":""}`, `{"note":"  "}`, `{"owner":7}`, `{"note":"n","x":1}`, `{"note":"a\u0000"}`, `{"note":"4242424242424242"}`} {
		b.put(t, "/v1/finance/exceptions/1/note", body).refused(t, http.StatusUnprocessableEntity, httpapi.CodeValidationFailed)
	}
	b.put(t, "/v1/finance/exceptions/1/sign-off", `{"reason":" "}`).refused(t, http.StatusUnprocessableEntity, httpapi.CodeValidationFailed)
	b.put(t, "/v1/finance/exceptions/1/sign-off", `{`).refused(t, http.StatusBadRequest, httpapi.CodeMalformedJSON)
}

// A period that is not over is never clean.
func TestFinance_ThisMonth(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.token = b.newToken(t, "bea", clients.Finance)
	today := time.Now().UTC().Truncate(24 * time.Hour)
	b.exec(t, `INSERT INTO reconciliation_runs (id, kind, status, from_at, to_at, finished_at) VALUES ($1, 'read', 'complete', $2, now(), now())`, uuid.New(), today.AddDate(0, -1, 0))
	r := read[finance.Shown](t, b.get(t, "/v1/finance/report?zone=UTC&from="+today.AddDate(0, 0, -7).Format(time.DateOnly)+"&to="+today.AddDate(0, 0, 2).Format(time.DateOnly)))
	require.Equal(t, "unfinished", r.Verdict, "%v", r.Incomplete)
}
