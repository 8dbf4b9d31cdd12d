package console_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/internal/clients"
)

// Two people look at one effect: one does it, and the other is told who did.
func TestTwoPeopleAtOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, charge := b.book()
	b.park(charge, "why")
	at := "/effects/" + charge.String() + "/replay"
	olga, otto := b.signedIn(b.operator), b.signedIn(b.token("Otto", clients.Operator))
	first, second := olga.fields(at), otto.fields(at)
	a := otto.post(at, append(second, "reason", "mine")...)
	require.Equal(t, "/console/effects/"+charge.String(), a.at, a.body)
	require.Contains(t, a.body, `class="said" role="status"`)
	require.NotContains(t, otto.get("/effects/"+charge.String()).body, `class="said"`, "it is said once")
	a = olga.post(at, append(first, "reason", "mine, too")...)
	require.Equal(t, http.StatusConflict, a.status)
	require.Contains(t, a.body, "Otto")
	require.Contains(t, a.body, "Preview again")
	require.Equal(t, 1, b.audits())
	a = olga.post(at, olga.fields(at)...)
	require.Equal(t, http.StatusUnprocessableEntity, a.status, "without a reason")
	require.Equal(t, 1, b.audits())
}

// An act that lets much money move waits for somebody else; who asked cannot approve it.
func TestSecondPerson(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.newResource(25_000)
	id := b.paid()
	olga, otto, rita := b.signedIn(b.operator), b.signedIn(b.token("Otto", clients.OperatorRefund)), b.signedIn(b.token("Rita", clients.OperatorReplay))
	at := "/bookings/" + id.String() + "/refund"
	require.Contains(t, olga.get(at).body, "your order waits until somebody else approves it")
	require.Contains(t, olga.get(at).body, "250.00 EUR")
	a := olga.post(at, append(olga.fields(at), "minor", "0", "reason", "the court was flooded")...)
	require.Equal(t, http.StatusOK, a.status, a.body)
	request := a.at[len("/console"):]
	require.Contains(t, request, "/requests/")
	refunds := func() int { return scan[int](b, `SELECT count(*) FROM refunds`) }
	require.Zero(t, refunds())

	require.Contains(t, otto.get("/requests").body, request)
	require.NotContains(t, olga.get(request).body, request+"/approve", "who asked is not offered it")
	require.Equal(t, http.StatusConflict, olga.post(request+"/approve", append(olga.fields(request), "reason", "I am sure")...).status)
	require.Equal(t, http.StatusForbidden, rita.post(request+"/approve", append(rita.fields("/"), "reason", "me, too")...).status)
	require.Zero(t, refunds())
	a = otto.post(request+"/approve", append(otto.fields(request), "reason", "seen the photographs")...)
	require.Equal(t, http.StatusOK, a.status, a.body)
	require.Equal(t, 1, refunds())
	require.Equal(t, http.StatusConflict, otto.post(request+"/approve", append(otto.fields("/"), "reason", "again")...).status)
	require.Equal(t, 1, refunds())

	// Less than that needs nobody else, and an amount is read in the currency's digits.
	id = b.paid()
	at = "/bookings/" + id.String() + "/refund"
	for amount, status := range map[string]int{"12.50": 200, "12,50": 200, "0": 422, "-1": 422, "12.505": 422, "much": 422, "999999999999999999999": 422} {
		require.Equal(t, status, olga.get(at+"?amount="+amount).status, amount)
	}
	require.Contains(t, olga.get(at+"?amount=12.5").body, `name="minor" value="1250"`)
	a = olga.post(at, append(olga.fields(at+"?amount=12.5"), "minor", "1250", "reason", "half an hour too late")...)
	require.Equal(t, "/console/bookings/"+id.String(), a.at, a.body)
	require.Equal(t, 2, refunds())
	require.EqualValues(t, 1250, scan[int64](b, `SELECT amount FROM refunds ORDER BY created_at DESC LIMIT 1`))
}

func TestPauseAndResume(t *testing.T) {
	t.Parallel()
	b := setup(t)
	v := b.signedIn(b.operator)
	b.book()
	a := v.post("/pauses/charge", append(v.fields("/pauses"), "to", "paused", "reason", "the bank is down")...)
	require.Equal(t, "/console/pauses", a.at, a.body)
	require.Contains(t, a.body, "the bank is down")
	require.Contains(t, v.get("/").body, "Charges are paused")
	a = v.post("/pauses/charge", append(v.fields("/pauses"), "to", "resumed", "reason", "it is back")...)
	require.NotContains(t, a.body, "the bank is down")
	require.Equal(t, 2, b.audits())
	require.Contains(t, v.get("/audit?action=resume").body, "it is back")
	require.Equal(t, 1, strings.Count(v.get("/audit?action=resume").body, `id="a-`), "one act of the two")
	require.Contains(t, v.get("/audit?actor=nobody").body, "Nothing was done that this filter lets through")
}

// A run is ended by whoever may do its act, for a reason, and says so from then on.
func TestRunIsEnded(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for range 3 {
		_, charge := b.book()
		b.park(charge, "why")
	}
	olga, rita := b.signedIn(b.operator), b.signedIn(b.token("Rita", clients.OperatorResolve))
	start := "/runs/new?act=replay&stuck=1&kind=charge"
	run := olga.post("/runs", append(olga.fields(start), "act", "replay", "stuck", "1", "kind", "charge", "cap", "3", "reason", "all")...).at[len("/console"):]
	require.NotContains(t, rita.get(run).body, "End this run", "without the scope of the act")
	require.Equal(t, http.StatusForbidden, rita.post(run+"/end", append(rita.fields("/"), "reason", "enough")...).status)
	require.Equal(t, http.StatusUnprocessableEntity, olga.post(run+"/end", append(olga.fields(run), "reason", " ")...).status)
	require.Zero(t, b.audits())
	a := olga.post(run+"/end", append(olga.fields(run), "reason", "the wrong filter")...)
	require.Equal(t, http.StatusOK, a.status, a.body)
	require.Contains(t, a.body, "The run is ended")
	require.Contains(t, a.body, "0 done, 0 refused, 3 left out, 0 left of 3")
	require.Contains(t, a.body, "Nothing was done: Olga ended the run: the wrong filter")
	require.NotContains(t, a.body, "End this run")
	require.Equal(t, 1, b.audits())
	require.Contains(t, olga.get("/audit?action=end_run").body, "the wrong filter")
}
