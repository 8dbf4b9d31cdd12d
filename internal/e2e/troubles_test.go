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
	b := newBed(t, nil, "MAX_SENDS=2", "STRIPE_TIMEOUT=20s", "JOB_TIMEOUT=50s", "RESCUE_AFTER=60s", "WORKER_DEAD_AFTER=3s")
	api := b.start("api")
	court := b.resource(1, time.Hour)
	ada := b.customer("ada", api.address)
	x := &troubles{bed: b, booking: map[string]string{}}
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
}

// stuck is the first stuck effect of each booking, as the command lists them.
func (x *troubles) stuck() map[string]stuckRow {
	x.Helper()
	stdout, stderr, code := x.command("worker", "outbox", "list", "--stuck", "--json")
	require.Less(x, code, 2, stderr)
	var page struct{ Rows []stuckRow }
	require.NoError(x, json.Unmarshal([]byte(stdout), &page), stdout)
	found := map[string]stuckRow{}
	for _, row := range page.Rows {
		require.True(x, row.Stuck)
		if first, there := found[row.Booking]; !there || first.Kind == "publish" && strings.HasPrefix(first.Reason, "waits") {
			found[row.Booking] = row
		}
	}
	return found
}

// replay lets an effect happen now, as the runbook says, and asserts that it was accepted.
func (x *troubles) replay(row stuckRow) {
	x.Helper()
	stdout, stderr, code := x.command("worker", "outbox", "replay", row.ID, "--reason", "by the runbook", "--yes", "--json")
	require.Zero(x, code, stdout+stderr)
}

// G3, G5, G6, G7: NATS stopped, the provider answering 500 although it charged, an event that cannot be published, a worker killed in
// the middle of a charge, and a job deleted from River's table, all at once.
// Expected: the operator's list has the five bookings and no other, each with what is the matter. With the causes mended and each
// effect replayed by the runbook, every booking is confirmed; the provider's ledger has one charge for each and no other; every event is in
// the stream, once, in order; and each replay is in the audit.
func TestFiveTroublesAreFoundUnderstoodAndReplayed(t *testing.T) {
	t.Parallel()
	x := fiveTroubles(t)
	found := x.stuck()
	require.Len(t, found, len(x.booking))
	for trouble, want := range map[string]struct{ kind, status, reason string }{
		natsStopped:   {"publish", "pending", "late: "},
		provider500:   {"charge", "in_doubt", "in doubt; the reconciler asks the provider next at "},
		unpublishable: {"publish", "parked", "parked, needs a person: the event is too large for the broker"},
		workerKilled:  {"charge", "pending", "no live job carries it: its job runs in a process that is not heard of"},
		jobDeleted:    {"charge", "pending", "no live job carries it: its job is gone"},
	} {
		row := found[x.booking[trouble]]
		require.Equal(t, []string{want.kind, want.status}, []string{row.Kind, row.Status}, trouble)
		require.Contains(t, row.Reason, want.reason, trouble)
		stdout, stderr, code := x.command("worker", "outbox", "show", x.booking[trouble], "--json")
		require.Equal(t, 1, code, stderr)
		require.Contains(t, stdout, row.ID)
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
	for _, id := range x.booking {
		ids = append(ids, id)
		if _, still := x.stuck()[id]; still { // events have gone out by themselves as soon as NATS was back
			x.replay(found[id])
		}
	}
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
