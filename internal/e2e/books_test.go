package e2e_test

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// story is how a booking should have gone, by everybody's account.
type story struct {
	booking string   // its status
	payment string   // its payment's
	active  int      // places that it takes
	charges int      // succeeded ones, in the provider's ledger
	calls   []string // all operations that were ever sent for it, each under its first and only key
	events  []string // in the stream: once each, in this order
}

func confirmed() story {
	return story{
		booking: "confirmed", payment: "succeeded", active: 1, charges: 1,
		calls: []string{"confirm:1", "create:1"}, events: []string{"held", "confirmed"},
	}
}

// expired is a booking whose intent was fenced, and whose slot is free.
func expired() story {
	return story{
		booking: "expired", payment: "canceled",
		calls: []string{"cancel:1", "confirm:1", "create:1"}, events: []string{"held", "expired"},
	}
}

// account is what the rows say of a booking.
type account struct {
	ID         string
	Status     string
	Payment    string
	PaymentID  string
	Received   int64
	Active     int
	Unfinished int      // effects
	Calls      []string // operation:ordinal
	EventIDs   []string
	EventTypes []string
}

func (b *bed) accounts() map[string]account {
	b.Helper()
	rows, err := b.db.Pool.Query(b.Context(), `
		SELECT b.id::text, b.status, p.status AS payment, p.id::text AS payment_id, p.amount_received AS received,
		       (SELECT count(*) FROM allocations a WHERE a.booking_id = b.id AND a.active) AS active,
		       (SELECT count(*) FROM outbox o WHERE o.booking_id = b.id AND o.status NOT IN ('done', 'not_needed', 'discarded')) AS unfinished,
		       ARRAY(SELECT c.operation || ':' || c.ordinal FROM provider_calls c WHERE c.payment_id = p.id ORDER BY 1) AS calls,
		       ARRAY(SELECT o.id::text FROM outbox o WHERE o.booking_id = b.id AND o.kind = 'publish' AND o.status <> 'discarded' ORDER BY o.event_seq) AS event_ids,
		       ARRAY(SELECT o.event_type FROM outbox o WHERE o.booking_id = b.id AND o.kind = 'publish' AND o.status <> 'discarded' ORDER BY o.event_seq) AS event_types
		  FROM bookings b JOIN payments p ON p.booking_id = b.id`)
	require.NoError(b, err)
	read, err := pgx.CollectRows(rows, pgx.RowToStructByName[account])
	require.NoError(b, err)
	accounts := map[string]account{}
	for _, a := range read {
		accounts[a.ID] = a
	}
	return accounts
}

// awaitStatus waits until all bookings stand so and all that is to be told of them is told.
func (b *bed) awaitStatus(within time.Duration, status string, ids ...string) {
	b.Helper()
	defer func() {
		if b.Failed() {
			b.Logf("%s", b.where())
		}
	}()
	eventually(b.T, within, fmt.Sprintf("%d bookings are %s and their effects finished", len(ids), status), func() bool {
		return count(b, `
			SELECT count(*) FROM bookings b
			 WHERE b.id = ANY ($1::uuid[]) AND b.status = $2
			   AND NOT EXISTS (SELECT FROM outbox o WHERE o.booking_id = b.id AND o.status NOT IN ('done', 'not_needed'))`,
			ids, status) == len(ids)
	})
}

// where tells how far the bookings are, for a test that failed.
func (b *bed) where() string {
	rows, err := b.db.Pool.Query(contextOf(b.T), `
		SELECT concat_ws(' ', b.status, b.ending_reason, p.status, o.kind, o.event_type, o.status, o.last_error, j.state, count(*))
		  FROM bookings b JOIN payments p ON p.booking_id = b.id JOIN outbox o ON o.booking_id = b.id
		  LEFT JOIN river_job j ON j.id = o.job_id
		 GROUP BY b.status, b.ending_reason, p.status, o.kind, o.event_type, o.status, o.last_error, j.state
		 ORDER BY 1`)
	if err != nil {
		return err.Error()
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	return fmt.Sprintf("the rows (%v):\n%s", err, strings.Join(lines, "\n"))
}

// requireStory compares rows, ledger, journal and stream with how it should have gone for these bookings.
func (b *bed) requireStory(want story, ids ...string) {
	b.Helper()
	ledger := b.sim.Ledger()
	require.NoError(b, ledger.Check(), "G3: the provider's own ledger")
	accounts, told := b.accounts(), b.told()
	for _, id := range ids {
		a, found := accounts[id]
		require.True(b, found, "booking %s has no row", id)
		charges := ledger.Succeeded(id)
		require.Len(b, charges, want.charges, "G3: succeeded charges of booking %s", id)
		for _, c := range charges {
			require.Equal(b, int64(price), c.Amount)
			require.Equal(b, "eur", c.Currency)
		}
		require.Equal(b, account{
			ID: id, Status: want.booking, Payment: want.payment, PaymentID: a.PaymentID, Received: int64(price * want.charges),
			Active: want.active, Calls: want.calls, EventIDs: a.EventIDs, EventTypes: want.events,
		}, a, "the rows of booking %s", id)
		b.requireTold(a, told[id])
	}
	b.requireKeys(accounts)
}

// requireTold compares a booking's events in the stream with its rows (G6): the same ids, once each, in order.
func (b *bed) requireTold(a account, told []message) {
	b.Helper()
	var ids, types []string
	for n, m := range told {
		require.Equal(b, m.event.ID, m.msgID, "the broker drops duplicates by the event's id")
		require.Equal(b, m.event.Type, m.subject)
		require.Equal(b, fmt.Sprintf("%010d", n+1), m.event.Sequence)
		require.Equal(b, a.ID, m.event.Subject)
		ids, types = append(ids, m.event.ID), append(types, strings.TrimPrefix(m.event.Type, "bookings.v1."))
	}
	require.Equal(b, a.EventTypes, types, "G6: the events of booking %s in the stream", a.ID)
	require.Equal(b, a.EventIDs, ids, "G6: the ids of the events of booking %s", a.ID)
}

// requireKeys asserts that what the provider received was sent under the keys in the rows, each with one set of
// parameters, and that no key was executed twice.
func (b *bed) requireKeys(accounts map[string]account) {
	b.Helper()
	known := map[string]bool{}
	for _, a := range accounts {
		for _, c := range a.Calls {
			known["hf:"+a.PaymentID+":"+c] = true
		}
	}
	params, executions := map[string]string{}, map[string]int{}
	none := fmt.Sprintf("%x", sha256.Sum256([]byte("{}")))
	for _, entry := range b.sim.Journal(0) {
		// Who is killed while sending leaves half a request, in which the provider finds no parameters.
		if entry.Method != http.MethodPost || entry.ParamsSHA256 == none && !entry.Executed {
			continue
		}
		key := entry.IdempotencyKey
		require.True(b, known[key], "the provider received %s under a key that was not recorded: %q", entry.Operation, key)
		if earlier, again := params[key]; again {
			require.Equal(b, earlier, entry.ParamsSHA256, "parameters are frozen with their key %s", key)
		}
		params[key] = entry.ParamsSHA256
		if entry.Executed {
			executions[key]++
		}
	}
	for key, n := range executions {
		require.Equal(b, 1, n, "executions of key %s", key)
	}
}
