package stripesim_test

import (
	"bytes"
	"context"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/payments/stripesim"
)

// unanswered are the faults under which a client that waits gets no answer.
func unanswered(fault string) bool {
	return slices.Contains([]string{"refuse", "reset_before", "reset_after", "reset_after_reused", "slow"}, fault)
}

// target is an operation that the fault can hit.
func target(fault string) string {
	if strings.HasPrefix(fault, "list_") {
		return "payment_intents.list"
	}
	if fault == "search_lag" {
		return "payment_intents.search"
	}
	return "payment_intents.confirm"
}

// meet arms a fault and sends what it hits, on a connection that has been used before. A client that the fault waits for leaves.
func (b *testBundle) meet(t *testing.T, f stripesim.Fault) response {
	t.Helper()
	id := b.create(t, "pm_card_visa")
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	b.client = &http.Client{Transport: b.inspect(t, transport)}
	require.Equal(t, "requires_confirmation", b.status(t, id))
	f.Operation, f.DelayMS = target(f.Fault), 10
	b.AddFault(f)
	if strings.HasPrefix(f.Fault, "list_") {
		return b.get(t, "/v1/payment_intents")
	}
	if f.Fault == "search_lag" {
		return b.search(t, "status:'succeeded'")
	}
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	if f.Fault == "slow" {
		go func() {
			defer leave()
			tick := time.NewTicker(time.Millisecond)
			defer tick.Stop()
			for len(b.confirms()) == 0 || b.confirms()[0].Fault == "" {
				select {
				case <-ctx.Done():
					return
				case <-tick.C:
				}
			}
		}()
	}
	return b.send(ctx, http.MethodPost, intentPath(id, "confirm"), "k", "")
}

func TestShouldRetryGoesWithAnyFault(t *testing.T) {
	t.Parallel()
	for _, fault := range stripesim.FaultNames() {
		if unanswered(fault) {
			continue
		}
		for _, told := range []bool{true, false} {
			t.Run(fault+" "+strconv.FormatBool(told), func(t *testing.T) {
				t.Parallel()
				r := setup(t).meet(t, stripesim.Fault{Fault: fault, ShouldRetry: &told})
				require.NotZero(t, r.status, r.err)
				require.Equal(t, strconv.FormatBool(told), r.header.Get("Stripe-Should-Retry"))
			})
		}
	}
}

// Whoever has seen the fault finds the address shut, the control surface too.
func TestTheListenerClosesWithAnyFault(t *testing.T) {
	t.Parallel()
	for _, fault := range stripesim.FaultNames() {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			r := b.meet(t, stripesim.Fault{Fault: fault, CloseListenerMS: 60_000})
			require.Equal(t, unanswered(fault), r.status == 0, "%d %v", r.status, r.err)
			eventually(t, func() bool {
				conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", strings.TrimPrefix(b.URL, "http://"))
				if err == nil {
					_ = conn.Close()
				}
				return err != nil
			}, "shut")
		})
	}
}

// net/http sends a keyed request again by itself when a connection that it reused breaks: one call, two sends, one execution.
func TestAReusedConnectionThatBreaksIsSentAgain(t *testing.T) {
	t.Parallel()
	for fault, executed := range map[string][]bool{"reset_after_reused": {true, false}, "reset_after": {true, false}, "reset_before": {false, true}} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			r := b.meet(t, stripesim.Fault{Fault: fault})
			require.NoError(t, r.err)
			require.Equal(t, "succeeded", r.body["status"])
			require.Equal(t, executed[0], r.header.Get("Idempotent-Replayed") == "true")
			sends := b.confirms()
			require.Len(t, sends, 2)
			require.Equal(t, executed[0], sends[0].Executed)
			require.Equal(t, executed[1], sends[1].Executed)
			require.Equal(t, []string{"succeeded"}, b.charges())
			require.NoError(t, b.Ledger().Check())
		})
	}
}

// The lost response, for every write: it ran once, and its key tells what became of it.
func TestALostAnswerOfEveryWrite(t *testing.T) {
	t.Parallel()
	writes := map[string]func(t *testing.T, b *testBundle) (path, form string){
		"payment_intents.create": func(*testing.T, *testBundle) (string, string) {
			return "/v1/payment_intents", cardIntent + "&description=lost"
		},
		"payment_intents.update": func(t *testing.T, b *testBundle) (string, string) {
			t.Helper()
			return intentPath(b.create(t, "pm_card_visa"), ""), "payment_method=pm_card_mastercard"
		},
		"payment_intents.confirm": func(t *testing.T, b *testBundle) (string, string) {
			t.Helper()
			return intentPath(b.create(t, "pm_card_visa"), "confirm"), ""
		},
		"payment_intents.capture": func(t *testing.T, b *testBundle) (string, string) {
			t.Helper()
			r := b.post(t, "/v1/payment_intents", "held", strings.Replace(cardIntent, "automatic", "manual", 1)+"&payment_method=pm_card_visa&confirm=true")
			require.Equal(t, "requires_capture", r.body["status"], r.raw)
			return intentPath(r.id(), "capture"), ""
		},
		"payment_intents.cancel": func(t *testing.T, b *testBundle) (string, string) {
			t.Helper()
			return intentPath(b.create(t, "pm_card_visa"), "cancel"), ""
		},
		"refunds.create": func(t *testing.T, b *testBundle) (string, string) {
			t.Helper()
			return "/v1/refunds", "payment_intent=" + b.paid(t, "pm_card_visa")
		},
		"refunds.update": func(t *testing.T, b *testBundle) (string, string) {
			t.Helper()
			return "/v1/refunds/" + b.refund(t, "made", "payment_intent="+b.paid(t, "pm_card_visa")).id(), "metadata[a]=b"
		},
		"report_runs.create": func(*testing.T, *testBundle) (string, string) {
			return "/v1/reporting/report_runs", "report_type=balance.summary.1&parameters[interval_start]=100&parameters[interval_end]=200"
		},
		"customers.create": func(*testing.T, *testBundle) (string, string) { return "/v1/customers", "email=ada@example.com" },
		"customers.update": func(t *testing.T, b *testBundle) (string, string) {
			t.Helper()
			return "/v1/customers/" + b.customer(t, "ada"), "name=Ada"
		},
		"payment_methods.attach": func(t *testing.T, b *testBundle) (string, string) {
			t.Helper()
			return "/v1/payment_methods/pm_card_visa/attach", "customer=" + b.customer(t, "ada")
		},
		"disputes.update": func(t *testing.T, b *testBundle) (string, string) {
			t.Helper()
			return "/v1/disputes/" + b.disputed(t), evidence + "winning_evidence"
		},
		"disputes.close": func(t *testing.T, b *testBundle) (string, string) {
			t.Helper()
			return "/v1/disputes/" + b.disputed(t) + "/close", ""
		},
	}
	require.Equal(t, setup(t).Writes(), slices.Sorted(maps.Keys(writes)))
	for operation, prepare := range writes {
		for _, f := range []stripesim.Fault{
			{Fault: "reset_after"},
			{Fault: "hang_after", DelayMS: 1},
			{Fault: "bad_body", Body: "truncated"},
			{Fault: "html_502_after"},
		} {
			t.Run(operation+" "+f.Fault, func(t *testing.T) {
				t.Parallel()
				b := setup(t)
				path, form := prepare(t, b)
				f.Operation = operation
				b.AddFault(f)
				if lost := b.post(t, path, "k", form); f.Fault != "hang_after" {
					require.Error(t, lost.err, "no whole answer came: %s", lost.raw)
				}
				again := b.post(t, path, "k", form)
				require.NoError(t, again.err)
				require.Equal(t, http.StatusOK, again.status, again.raw)
				require.Equal(t, "true", again.header.Get("Idempotent-Replayed"))
				sends := b.requests(f.Operation)
				sends = sends[len(sends)-2:]
				require.Equal(t, []bool{true, false}, []bool{sends[0].Executed, sends[1].Executed})
				require.NoError(t, b.Ledger().Check())
			})
		}
	}
}

// disputed makes a dispute.
func (b *testBundle) disputed(t *testing.T) string {
	t.Helper()
	b.paid(t, "pm_card_createDispute")
	return b.Ledger().Disputes[0].ID
}

// A fault that could hit nothing would let a test pass that tests nothing.
func TestAFaultThatCanHitNothingIsRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, f := range []stripesim.Fault{
		{Operation: "payment_intent.confirm", Fault: "reset_after"},
		{Operation: "refund.create", Fault: "reset_after"},
		{Operation: "payment_intents.confirm", Fault: "list_page_error"},
		{Operation: "payment_intents.retrieve", Fault: "in_use_409"},
		{Operation: "payment_intents.confirm", Fault: "reset_after", Body: "empty"},
	} {
		require.Error(t, b.CheckFault(f), "%+v", f)
	}
	for _, f := range []stripesim.Fault{
		{Fault: "list_page_error"},
		{Operation: "*", Fault: "in_use_409"},
		{Operation: "*.list", Fault: "list_page_empty"},
		{Operation: "payment_intents.*", Fault: "reset_after_reused"},
		{Operation: "account.retrieve", Fault: "error_503"},
	} {
		require.NoError(t, b.CheckFault(f), "%+v", f)
	}
}

// The README is what a newcomer goes by: every fault and every operation stands in it.
func TestTheReadmeKnowsEveryName(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("README.md")
	require.NoError(t, err)
	stands := func(name string) bool { return bytes.Contains(text, []byte("`"+name+"`")) }
	for _, fault := range stripesim.FaultNames() {
		require.True(t, stands(fault) || stands(strings.TrimSuffix(fault, "_after")), fault) // error_503_after with error_503
	}
	b := setup(t)
	for _, operation := range b.Operations() {
		require.True(t, stands(operation), operation)
	}
}
