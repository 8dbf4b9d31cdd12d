package finance_test

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/internal/finance"
	"holdfast/payments/stripe"
	"holdfast/payments/stripesim"
)

// between lets something happen at the provider before a later page of its transactions is asked for.
func (l *live) between(happens func()) {
	l.Helper()
	target, err := url.Parse(l.sim.URL)
	require.NoError(l, err)
	forward := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }, Transport: &http.Transport{DisableKeepAlives: true}}
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/balance_transactions" && r.URL.Query().Has("starting_after") && happens != nil {
			happens()
			happens = nil
		}
		forward.ServeHTTP(w, r)
	}))
	l.Cleanup(proxy.Close)
	l.gateway, err = stripe.New(stripe.Config{APIKey: "sk_test_finance", BaseURL: proxy.URL, Timeout: time.Minute})
	require.NoError(l, err)
}

// accusesNobody: nothing was raised, and nothing was even compared.
func (l *live) accusesNobody(r finance.Report, why string) {
	l.Helper()
	require.False(l, r.Complete, why)
	require.NotEmpty(l, r.Incomplete, why)
	require.Empty(l, r.Exceptions, why)
	var items, matched int
	require.NoError(l, l.Pool.QueryRow(l.Context(), `SELECT count(*) FROM reconciliation_items`).Scan(&items))
	require.NoError(l, l.Pool.QueryRow(l.Context(), `SELECT count(*) FROM reconciliation_runs WHERE kind = 'match'`).Scan(&matched))
	require.Equal(l, []int{0, 0}, []int{items, matched}, why)
}

// byHand are the provider's refunds that were made by hand, as exceptions should name them.
func (l *live) byHand() []string {
	var all []string
	for _, r := range l.sim.Ledger().Refunds {
		all = append(all, r.ID)
	}
	slices.Sort(all)
	return all
}

func about(r finance.Report, kind string) []string {
	var all []string
	for _, i := range r.Exceptions {
		if i.Kind == kind && i.Status == "open" {
			all = append(all, i.About)
		}
	}
	slices.Sort(all)
	return all
}

// Through the real gateway, of 250 transactions of one second: whatever goes wrong with a page, the run says that it is incomplete and
// accuses nobody, or it has each of them once, to the cent (G8).
func TestFaults_OfPages(t *testing.T) {
	t.Parallel()
	l := goLive(t)
	require.NoError(t, l.sim.StandAt(l.sim.Now().Add(50*time.Millisecond)))
	_, intent := l.pay(domain.Money{Amount: 10000, Currency: "EUR"}, "pm_card_visa")
	refund := func() { l.act(stripesim.Action{Action: "refund", PaymentIntent: intent, Amount: 7}) }
	for range 249 {
		refund()
	}
	for _, f := range []stripesim.Fault{
		{Fault: "list_page_empty"}, // of what nobody has ever listed
		{Fault: "list_page_error"},
		{Fault: "list_page_error", Nth: 2},
		{Fault: "list_page_empty", Nth: 2},
		{Fault: "list_page_empty", Nth: 3},
		{Fault: "bad_body", Nth: 3},
		{Fault: "list_page_empty"}, // of what was listed in part
	} {
		f.Operation, f.Times = "balance_transactions.list", -1
		l.sim.AddFault(f)
		r := l.report()
		l.sim.ClearFaults()
		l.accusesNobody(r, f.Fault)
	}
	l.between(refund) // it is of the same second: older than what is newest when the listing begins it is not
	l.accusesNobody(l.report(), "a row added to the head while the rest was read")
	r := l.report()
	require.True(t, r.Complete, r.Incomplete)
	require.Len(t, l.byHand(), 250)
	require.Equal(t, l.byHand(), about(r, finance.RefundWithoutCause), "each once")
	require.Len(t, r.Exceptions, 250)
	l.agreesWith(r)

	// What is added after the window's end is in the next one, and in that alone.
	l.exec(`DELETE FROM reconciliation_runs r WHERE NOT EXISTS (SELECT FROM reconciliation_items i WHERE r.id IN (i.run_id, i.closed_by_run))`)
	l.between(func() {
		l.sim.Advance(time.Since(l.sim.Now()) + time.Second)
		refund()
	})
	r = l.report()
	require.True(t, r.Complete, r.Incomplete)
	require.Len(t, about(r, finance.RefundWithoutCause), 250)
	require.Eventually(t, func() bool { return time.Now().After(l.sim.Now()) }, time.Minute, 10*time.Millisecond)
	r = l.report()
	require.True(t, r.Complete, r.Incomplete)
	require.Equal(t, l.byHand(), about(r, finance.RefundWithoutCause))
	l.agreesWith(r)
}

// An empty page is believed where the provider itself bears it out: it knows nothing of the charge that our book has. So a book that is
// wrong alone never keeps a period from being told.
func TestFaults_ABookThatIsWrongAloneIsTold(t *testing.T) {
	t.Parallel()
	l := goLive(t)
	l.pay(domain.Money{Amount: 10000, Currency: "EUR"}, "pm_card_visa")
	l.exec(`UPDATE payments SET provider_intent_id = 'pi_of_nobody'`)
	l.sim.AddFault(stripesim.Fault{Operation: "balance_transactions.list", Fault: "list_page_empty", Times: -1})
	r := l.report()
	require.True(t, r.Complete, r.Incomplete)
	require.Equal(t, []string{finance.ConfirmedWithoutCharge}, kinds(r))
}

// A payout whose rows could not be listed whole is pending, and never one that does not add up.
func TestFaults_OfAPayoutsPages(t *testing.T) {
	t.Parallel()
	l := goLive(t)
	settlement := stripesim.DefaultSettlement()
	settlement.AvailableDays = 0
	require.NoError(t, l.sim.SetSettlement(settlement))
	l.pay(domain.Money{Amount: 10000, Currency: "EUR"}, "pm_card_visa")
	l.act(stripesim.Action{Action: "create_payout"})
	for _, f := range []stripesim.Fault{
		{Operation: "payouts.retrieve", Fault: "error_500_before"},
		{Operation: "balance_transactions.list", Nth: 2, Fault: "list_page_error"},
		{Operation: "balance_transactions.list", Fault: "list_page_empty"}, // of the payout: the rest was listed
	} {
		f.Times = -1
		l.sim.AddFault(f)
		r := l.report()
		l.sim.ClearFaults()
		l.accusesNobody(r, f.Operation)
		require.NotEmpty(t, r.Pending)
	}
	r := l.report()
	require.True(t, r.Complete, r.Incomplete)
	require.Empty(t, r.Exceptions)
	require.Len(t, r.Payouts, 1)
	require.Equal(t, []int64{1, r.Payouts[0].Amount}, []int64{r.Payouts[0].Rows, r.Payouts[0].RowsNet})
	l.agreesWith(r)
}
