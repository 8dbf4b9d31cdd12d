package e2e_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/payments/stripesim"
)

// troubles is a deployment in which five things have gone wrong at once, each with a booking of its own, and nobody is there who
// would mend anything by himself: no reconciler runs.
type troubles struct {
	*bed

	desk    customer          // an operator, over HTTP
	booking map[string]string // by trouble
	broken  string            // the event that cannot be published
	payload string            // as it was
}

// The troubles.
const (
	natsStopped   = "NATS stopped"
	provider500   = "the provider answers 500"
	unpublishable = "a row that cannot be published"
	workerKilled  = "a worker killed while it charged"
	jobDeleted    = "a job deleted from River's table"
)

// fiveTroubles brings a deployment into all of them.
func fiveTroubles(t *testing.T) *troubles {
	t.Helper()
	b := newBed(t, nil, "MAX_SENDS=2", "STRIPE_TIMEOUT=20s", "JOB_TIMEOUT=50s", "RESCUE_AFTER=10m", "WORKER_DEAD_AFTER=3s") // no rescue mends a trouble before it is looked at
	api := b.start("api")
	court := b.resource(1, time.Hour)
	ada := b.customer("ada", api.address)
	x := &troubles{bed: b, booking: map[string]string{}, desk: customer{
		url: "http://" + api.address, http: newHTTP(t),
		token: b.made("token", "api", "token", "create", "--client", "on-call", "--scope", "operator"),
	}}
	for hour, trouble := range []string{provider500, unpublishable, workerKilled, jobDeleted} {
		x.booking[trouble] = ada.book(t, fmt.Sprint("key-", hour), wish{resource: court, hour: hour})
	}
	b.sim.AddFault(stripesim.Fault{KeyMatch: x.key(provider500), Fault: "error_500_after", Times: -1})
	b.sim.AddFault(stripesim.Fault{KeyMatch: x.key(workerKilled), Fault: "hang_after"})
	x.change(`DELETE FROM river_job WHERE id = (SELECT job_id FROM outbox WHERE booking_id = $1 AND kind = 'charge')`, x.booking[jobDeleted])
	x.broken = value[string](b, `SELECT id::text FROM outbox WHERE booking_id = $1 AND kind = 'publish'`, x.booking[unpublishable])
	x.payload = value[string](b, `SELECT payload::text FROM outbox WHERE id = $1`, x.broken)
	x.change(`UPDATE outbox SET payload = payload || jsonb_build_object('note', repeat('x', 2000000)) WHERE id = $1`, x.broken)
	x.change(`UPDATE outbox SET created_at = now() + interval '1 hour' WHERE kind = 'publish'`) // held events get a job later

	first := b.start("worker")
	eventually(t, soon, "a charge is in doubt, an event is parked, and a charge is under way", func() bool {
		return count(b, `SELECT count(*) FROM outbox WHERE booking_id = $1 AND status = 'in_doubt'`, x.booking[provider500]) == 1 &&
			count(b, `SELECT count(*) FROM outbox WHERE id = $1 AND status = 'parked'`, x.broken) == 1 && b.sent(x.key(workerKilled), true) == 1
	})
	require.NoError(t, first.Kill())
	b.nats.Stop()
	x.booking[natsStopped] = ada.book(t, "key-4", wish{resource: court, hour: 4})
	b.start("worker")
	eventually(t, soon, "a booking is confirmed and nobody is told", func() bool {
		return count(b, `SELECT count(*) FROM outbox WHERE booking_id = $1 AND kind = 'publish' AND last_error <> ''`, x.booking[natsStopped]) > 0
	})
	x.change(`UPDATE outbox SET created_at = now() - interval '2 minutes' WHERE booking_id = $1 AND kind = 'publish'`, x.booking[natsStopped])
	eventually(t, soon, "the killed worker counts as dead", func() bool {
		return strings.Contains(x.stuck()[x.booking[workerKilled]].Reason, "not heard of")
	})
	return x
}

// key is how the key of a booking's confirm begins.
func (x *troubles) key(trouble string) string {
	x.Helper()
	return "hf:" + value[string](x.bed, `SELECT id::text FROM payments WHERE booking_id = $1`, x.booking[trouble]) + ":confirm"
}

func (x *troubles) change(sql string, args ...any) {
	x.Helper()
	_, err := x.db.Pool.Exec(x.Context(), sql, args...)
	require.NoError(x, err)
}

// stuckRow is what an operator is shown of an effect.
type stuckRow struct {
	ID       string `json:"id"`
	Booking  string `json:"booking_id"`
	Kind     string `json:"kind"`
	Status   string `json:"status"`
	Stuck    bool   `json:"stuck"`
	Reason   string `json:"reason"`
	Attempts int    `json:"attempts"`
	AtStake  *struct {
		Amount int64 `json:"amount"`
	} `json:"at_stake"`
	Next struct {
		What string `json:"what"`
	} `json:"next"`
}

// stuck is what is the matter with each booking, as the command lists it.
func (x *troubles) stuck() map[string]stuckRow {
	x.Helper()
	stdout, stderr, code := x.command("worker", "outbox", "list", "--stuck", "--json")
	require.Less(x, code, 2, stderr)
	return x.read(stdout)
}

// read reads a page of the list, and leaves out the events that only wait for an earlier one of their booking.
func (x *troubles) read(text string) map[string]stuckRow {
	x.Helper()
	var page struct{ Rows []stuckRow }
	require.NoError(x, json.Unmarshal([]byte(text), &page), text)
	found := map[string]stuckRow{}
	for _, row := range page.Rows {
		require.True(x, row.Stuck)
		if !strings.HasPrefix(row.Reason, "waits for an earlier event") {
			found[row.Booking] = row
		}
	}
	return found
}

// preview asks what a replay would do, by command and over HTTP, and returns what the provider is said to show.
func (x *troubles) preview(row stuckRow) (would, says string) {
	x.Helper()
	type preview struct {
		Allowed  bool   `json:"allowed"`
		Would    string `json:"would"`
		Unread   string `json:"unread"`
		Provider *struct {
			Says string `json:"says"`
		} `json:"provider"`
	}
	var byCommand, byHTTP preview
	stdout, stderr, code := x.command("worker", "outbox", "replay", row.ID, "--reason", "a look", "--dry-run", "--json")
	require.Zero(x, code, stdout+stderr)
	require.NoError(x, json.Unmarshal([]byte(stdout), &byCommand), stdout)
	answered := x.desk.path(x.T, "/v1/ops/effects/"+row.ID+"/preview?act=replay")
	require.Equal(x, 200, answered.status, answered.body)
	require.NoError(x, json.Unmarshal([]byte(answered.body), &byHTTP), answered.body)
	for _, p := range []preview{byCommand, byHTTP} {
		require.True(x, p.Allowed)
		require.NotEmpty(x, p.Would)
		require.Equal(x, row.Kind == "publish", p.Provider == nil, "%s%s", stdout, p.Unread)
	}
	require.Equal(x, byCommand.Would, byHTTP.Would)
	if byHTTP.Provider == nil {
		return byHTTP.Would, ""
	}
	return byHTTP.Would, byHTTP.Provider.Says
}

// replay lets an effect happen now by command, as the runbook says, and asserts that it was accepted.
func (x *troubles) replay(row stuckRow) {
	x.Helper()
	stdout, stderr, code := x.command("worker", "outbox", "replay", row.ID, "--reason", "by the runbook", "--yes", "--json")
	require.Zero(x, code, stdout+stderr)
}

// G3, G5, G6, G7: NATS stopped, the provider answering 500 although it charged, an event that cannot be published, a worker killed in
// the middle of a charge, and a job deleted from River's table, all at once.
// Expected: the operator's list has the five bookings and no other, each with what is the matter, what comes next, and, asked
// before anything is done, what the provider shows; the API says the same, and so does the console, in a browser. With the causes mended and each effect replayed by the runbook, every booking is confirmed; the provider's ledger has one charge for each and no other; every event is in
// the stream, once, in order; and each replay is in the audit.
func TestFiveTroublesAreFoundUnderstoodAndReplayed(t *testing.T) {
	t.Parallel()
	x := fiveTroubles(t)
	found := x.stuck()
	require.Len(t, found, len(x.booking))
	answered := x.desk.path(t, "/v1/ops/effects?stuck=true")
	require.Equal(t, 200, answered.status, answered.body)
	overHTTP := x.read(answered.body)
	console := x.console()
	for trouble, want := range map[string]struct{ kind, status, reason, next, provider string }{
		natsStopped:   {"publish", "pending", "late: ", "a worker ", ""},
		provider500:   {"charge", "in_doubt", "in doubt; the reconciler asks the provider next at ", "the reconciler asks the provider", "25.00 EUR"},
		unpublishable: {"publish", "parked", "parked, needs a person: the event is too large for the broker", "nothing, until a person acts", ""},
		workerKilled:  {"charge", "pending", "no live job carries it: its job runs in a process that is not heard of", "the sweep gives it a new job", "25.00 EUR"},
		jobDeleted:    {"charge", "pending", "no live job carries it: its job is gone", "the sweep gives it a new job", "Nothing was ever sent"},
	} {
		row := found[x.booking[trouble]]
		require.Equal(t, []string{want.kind, want.status}, []string{row.Kind, row.Status}, trouble)
		require.Contains(t, row.Reason, want.reason, trouble)
		require.Contains(t, row.Next.What, want.next, trouble)
		require.Equal(t, want.kind == "charge", row.AtStake != nil && row.AtStake.Amount == price, trouble)
		require.Equal(t, row.Reason, overHTTP[x.booking[trouble]].Reason, trouble)
		would, says := x.preview(row)
		t.Logf("%s: %s; %s", trouble, would, says)
		require.Contains(t, says, want.provider, trouble)
		console.preview(row, want.provider)
		console.shoot("trouble-" + row.Kind + "-" + row.Status + "-" + strings.NewReplacer(" ", "-", "'", "").Replace(trouble))
		stdout, stderr, code := x.command("worker", "outbox", "show", x.booking[trouble], "--json")
		require.Equal(t, 1, code, stderr)
		require.Contains(t, stdout, row.ID)
		timeline, stderr, code := x.command("worker", "outbox", "timeline", x.booking[trouble], "--json")
		require.Zero(t, code, stderr)
		require.Contains(t, timeline, row.ID, trouble)
		require.Equal(t, trouble != jobDeleted, strings.Contains(timeline, x.key(trouble)), "%s: the timeline has the key that was sent", trouble)
	}

	require.Equal(t, x.broken, found[x.booking[unpublishable]].ID)
	x.nats.Restart()
	x.replay(found[x.booking[unpublishable]]) // nothing is mended yet
	eventually(t, soon, "the event is parked again", func() bool {
		return count(x.bed, `SELECT count(*) FROM outbox o JOIN river_job j ON j.id = o.job_id
			WHERE o.id = $1 AND o.status = 'parked' AND j.state = 'completed'`, x.broken) == 1
	})
	x.change(`UPDATE outbox SET payload = $2::text::jsonb WHERE id = $1`, x.broken, x.payload) // a developer's act
	x.sim.ClearFaults()
	var ids []string
	for trouble, id := range x.booking {
		ids = append(ids, id)
		if _, still := x.stuck()[id]; !still { // events have gone out by themselves as soon as NATS was back
			continue
		}
		if trouble == jobDeleted || trouble == workerKilled { // half of them in the console, half by command
			console.replay(found[id], "25.00 EUR", "by the runbook")
			continue
		}
		x.replay(found[id])
	}
	console.audited("by the runbook")
	console.shoot("trouble-audit")
	_, stderr, code := x.command("reconciler", "once")
	require.Less(t, code, 2, stderr)
	x.awaitStatus(soon, "confirmed", ids...)
	x.requireStory(confirmed(), ids...)
	x.requireCharges(ids)
	require.Empty(t, x.stuck())
	require.Equal(t, 1, x.sent(x.key(provider500), true), "what was executed was never executed again")
	for _, trouble := range []string{provider500, workerKilled, jobDeleted} {
		require.Equal(t, 1, count(x.bed, `SELECT count(*) FROM operator_actions WHERE booking_id = $1 AND action = 'replay' AND reason = 'by the runbook'`,
			x.booking[trouble]), trouble)
		_, _, code := x.command("worker", "outbox", "replay", found[x.booking[trouble]].ID, "--reason", "once more", "--yes", "--json")
		require.Equal(t, 1, code, "%s: a finished charge is refused", trouble)
	}
}
