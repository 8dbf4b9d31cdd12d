package operator_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/internal/operator"
	"holdfast/outbox"
	"holdfast/payments"
	"holdfast/payments/stripesim"
)

// published reads a table of docs/operators.md: its rows, by the names of its columns.
func published(t *testing.T, name string) (rows []map[string]string) {
	t.Helper()
	text, err := os.ReadFile("../../docs/operators.md")
	require.NoError(t, err)
	_, table, found := strings.Cut(string(text), "<!-- "+name+" -->\n")
	require.True(t, found)
	table, _, _ = strings.Cut(table, "\n\n")
	var columns []string
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		switch {
		case columns == nil:
			columns = cells
		case strings.HasPrefix(cells[0], "--"):
		default:
			row := map[string]string{}
			for i, column := range columns {
				row[column] = cells[i]
			}
			rows = append(rows, row)
		}
	}
	return rows
}

func effectKinds() []domain.EffectKind {
	return []domain.EffectKind{domain.EffectCharge, domain.EffectCancel, domain.EffectRefund, domain.EffectPublish, domain.EffectRefresh}
}

func effectStatuses() []domain.EffectStatus {
	return []domain.EffectStatus{
		domain.EffectPending, domain.EffectInDoubt, domain.EffectParked, domain.EffectDone, domain.EffectNotNeeded, domain.EffectDiscarded,
	}
}

// The published table, cell by cell, through the desk on real parts (G3, G4, G7). Expected of each: allowed or refused exactly as
// published; one audit row if it was accepted, none and nothing changed if it was refused; never another error. Afterwards, when
// everybody has done their work: at most one charge at the provider, whatever the act was, and no booking that never ends.
func TestOperators_ThePublishedTable(t *testing.T) {
	t.Parallel()
	rows := published(t, "acts")
	require.Len(t, rows, len(effectKinds())*len(effectStatuses()), "every kind in every state")
	for _, kind := range effectKinds() {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			b := newMoneyBed(t).withBroker()
			for _, status := range effectStatuses() {
				at := slices.IndexFunc(rows, func(r map[string]string) bool { return r["kind"] == string(kind) && r["state"] == string(status) })
				require.NotEqual(t, -1, at, "%s %s is not published", kind, status)
				for _, act := range []operator.Act{operator.Replay, operator.Republish, operator.Resolve, operator.Discard} {
					switch says := rows[at][string(act)]; says {
					case "proof":
						b.cell(kind, status, act, true, "yes")
						b.cell(kind, status, act, false, "no")
					case "yes", "no", "—":
						b.cell(kind, status, act, false, says)
					default:
						require.Fail(t, "the table says neither yes, no nor proof", "%s %s %s: %q", kind, status, act, says)
					}
				}
			}
			require.NoError(t, b.sim.Ledger().Check())
		})
	}
}

// cell makes an effect that stands so, with or without what would prove the act right, does the act, and judges.
func (b *moneyBed) cell(kind domain.EffectKind, status domain.EffectStatus, act operator.Act, proof bool, says string) {
	b.Helper()
	name := fmt.Sprintf("%s %s %s, proof %t", kind, status, act, proof)
	id, e := b.effectThat(kind, status, act, proof)
	require.Equal(b, status, b.load(e).Status, name)
	before, rows := b.tale(id), b.audited(id)
	result, err := b.operators().Do(b.ctx, operator.Order{
		Act: act, On: operator.Target{Effect: e}, By: "ops@example.org", Reason: name,
	})
	var refused *outbox.RefusedError
	switch {
	case err == nil:
		require.NotEqual(b, "no", says, "%s: accepted, %s", name, result.Said)
		require.Equal(b, rows+1, b.audited(id), "%s: one row in the audit", name)
		require.NotEmpty(b, result.Said, name)
	case errors.As(err, &refused):
		require.NotEqual(b, "yes", says, "%s: %s", name, refused.Reason)
		require.NotEmpty(b, refused.Reason, name)
		require.Equal(b, rows, b.audited(id), "%s: what is refused is not on record", name)
		require.Equal(b, before, b.tale(id), "%s: what is refused changes nothing", name)
	default:
		require.NoError(b, err, name)
	}
	b.afterwards(id, name)
}

// afterwards lets everybody do their work, and judges.
func (b *moneyBed) afterwards(id domain.BookingID, name string) {
	b.Helper()
	b.gateway.spoilt = false
	b.sim.ClearFaults()
	b.aDayPasses(id)
	b.exec(`UPDATE bookings SET hold_expires_at = clock_timestamp() WHERE id = $1 AND status = 'held'`, id)
	b.until(func() bool {
		worked, err := b.engine().SweepHold(b.ctx)
		require.NoError(b, err)
		return !worked
	})
	b.exec(`UPDATE outbox SET status = 'pending' WHERE booking_id = $1 AND kind = 'cancel' AND status = 'parked'`, id) // somebody replays it
	b.heal(id)
	require.LessOrEqual(b, len(b.sim.Ledger().Succeeded(id.String())), 1, name)
	var status string
	b.scan(`SELECT status FROM bookings WHERE id = $1`, &status, id)
	require.NotContains(b, []string{"held", "ending"}, status, "%s: a booking that never ends", name)
}

// aDayPasses for the keys of a booking's refunds.
func (b *moneyBed) aDayPasses(id domain.BookingID) {
	b.Helper()
	b.exec(`
		UPDATE provider_calls SET first_sent_at = first_sent_at - interval '25 hours', last_sent_at = last_sent_at - interval '25 hours'
		 WHERE operation = 'refund' AND payment_id = (SELECT id FROM payments WHERE booking_id = $1)`, id)
}

func (b *moneyBed) audited(id domain.BookingID) int {
	b.Helper()
	return b.count(`SELECT count(*) FROM operator_actions WHERE booking_id = $1`, id)
}

// tale is all that our rows tell of a booking.
func (b *moneyBed) tale(id domain.BookingID) (text string) {
	b.Helper()
	b.scan(`
		SELECT coalesce(jsonb_pretty(jsonb_build_object(
		    'booking', (SELECT to_jsonb(b) FROM bookings b WHERE b.id = $1),
		    'payment', (SELECT to_jsonb(p) FROM payments p WHERE p.booking_id = $1),
		    'calls', (SELECT jsonb_agg(c ORDER BY c.key) FROM provider_calls c JOIN payments p ON p.id = c.payment_id WHERE p.booking_id = $1),
		    'refunds', (SELECT jsonb_agg(r ORDER BY r.id) FROM refunds r JOIN payments p ON p.id = r.payment_id WHERE p.booking_id = $1),
		    'effects', (SELECT jsonb_agg(o ORDER BY o.id) FROM outbox o WHERE o.booking_id = $1),
		    'requests', (SELECT jsonb_agg(q) FROM operator_requests q WHERE q.booking_id = $1))), '')`, &text, id)
	return text
}

// effectThat makes an effect that stands so. proof says whether what would allow the act is there.
func (b *moneyBed) effectThat(kind domain.EffectKind, status domain.EffectStatus, act operator.Act, proof bool) (domain.BookingID, domain.EffectID) {
	b.Helper()
	switch kind {
	case domain.EffectCharge:
		return b.chargeThat(status, act, proof)
	case domain.EffectCancel:
		return b.cancelThat(status, act, proof)
	case domain.EffectRefund:
		return b.refundThat(status, act, proof)
	case domain.EffectPublish:
		return b.eventThat(status)
	case domain.EffectRefresh:
		id := b.confirmed()
		e := domain.NewID[domain.EffectID]()
		b.exec(`INSERT INTO outbox (id, booking_id, kind, due_at, created_at) VALUES ($1, $2, 'refresh', clock_timestamp(), clock_timestamp())`, e, id)
		b.set(e, status)
		return id, e
	default:
		require.Fail(b, "no such kind")
		return domain.BookingID{}, domain.EffectID{}
	}
}

// set puts an effect where nothing but a person, an older build or a bug would put it.
func (b *moneyBed) set(e domain.EffectID, status domain.EffectStatus) {
	b.Helper()
	b.exec(`UPDATE outbox SET status = $2, last_error = 'put there by a test', finished_at = CASE WHEN $3 THEN clock_timestamp() END WHERE id = $1`,
		e, status, status.Finished())
}

// lost makes the next send of an operation for a booking go unanswered; it is carried out all the same, or not.
func (b *moneyBed) lost(operation string, carriedOut bool) {
	b.Helper()
	fault := "error_503"
	if carriedOut {
		fault = "error_503_after"
	}
	b.sim.AddFault(stripesim.Fault{Operation: operation, Fault: fault, Times: 1})
}

// doubt lets the worker of a booking's effect give up after its first unanswered send.
func (b *moneyBed) doubt(id domain.BookingID, kind domain.EffectKind) {
	b.Helper()
	sends := b.config.MaxSends
	b.config.MaxSends = 1
	b.until(func() bool { b.turn(id, kind); return b.effect(id, kind).Status == domain.EffectInDoubt })
	b.config.MaxSends = sends
}

func (b *moneyBed) chargeThat(status domain.EffectStatus, act operator.Act, proof bool) (domain.BookingID, domain.EffectID) {
	b.Helper()
	id := b.book("pm_card_visa")
	e := b.effect(id, domain.EffectCharge).ID
	switch status {
	case domain.EffectPending:
		b.lost("payment_intents.confirm", proof)
		b.turn(id, domain.EffectCharge)
	case domain.EffectInDoubt:
		b.lost("payment_intents.confirm", proof)
		b.doubt(id, domain.EffectCharge)
	case domain.EffectParked:
		b.gateway.spoilt = true
		b.turn(id, domain.EffectCharge)
		b.gateway.spoilt = act == operator.Resolve && !proof
		if act == operator.Discard && !proof { // somebody has confirmed it by hand
			out := b.gateway.Send(b.ctx, payments.Call{Operation: domain.OpConfirm, IntentID: b.made(id), Key: "hand-" + id.String(), Params: payments.Params{}})
			require.Equal(b, payments.Executed, out.Class, out.Detail)
		}
	case domain.EffectDone:
		b.work(id, domain.EffectCharge)
	case domain.EffectNotNeeded:
		b.end(id)
	case domain.EffectDiscarded:
		b.gateway.spoilt = true
		b.turn(id, domain.EffectCharge)
		b.discarded(e)
	}
	return id, e
}

// made is the intent that the provider has made for a booking, whether it is known here or not.
func (b *moneyBed) made(id domain.BookingID) (intent string) {
	b.Helper()
	var key string
	b.scan(`SELECT c.key FROM provider_calls c JOIN payments p ON p.id = c.payment_id WHERE p.booking_id = $1 AND operation = 'create'`, &key, id)
	for _, j := range b.sim.Journal(0) {
		if j.IdempotencyKey == key {
			intent = j.Object
		}
	}
	return intent
}

// discarded discards an effect, as a person does.
func (b *moneyBed) discarded(e domain.EffectID) {
	b.Helper()
	_, err := b.operators().Do(b.ctx, operator.Order{Act: operator.Discard, On: operator.Target{Effect: e}, By: "ada", Reason: "it is not wanted"})
	require.NoError(b, err)
}

func (b *moneyBed) cancelThat(status domain.EffectStatus, act operator.Act, proof bool) (domain.BookingID, domain.EffectID) {
	b.Helper()
	id := b.book("pm_card_chargeDeclined")
	b.work(id, domain.EffectCharge)
	b.end(id)
	e := b.effect(id, domain.EffectCancel).ID
	fence := func() {
		b.lost("payment_intents.cancel", proof)
		b.turn(id, domain.EffectCancel)
	}
	switch status {
	case domain.EffectPending:
		fence()
	case domain.EffectInDoubt:
		b.lost("payment_intents.cancel", proof)
		b.exec(`UPDATE outbox SET attempts = 2 WHERE id = $1`, e) // its last try
		b.turn(id, domain.EffectCancel)
		b.set(e, domain.EffectInDoubt)
	case domain.EffectParked:
		if act == operator.Discard && proof {
			b.work(id, domain.EffectCancel) // the booking has ended otherwise
		} else {
			fence()
		}
		b.set(e, domain.EffectParked)
	case domain.EffectDone, domain.EffectNotNeeded, domain.EffectDiscarded:
		b.work(id, domain.EffectCancel)
		b.set(e, status)
	}
	return id, e
}

func (b *moneyBed) refundThat(status domain.EffectStatus, act operator.Act, proof bool) (domain.BookingID, domain.EffectID) {
	b.Helper()
	id := b.confirmed()
	b.ask(id, 1000)
	e := b.effect(id, domain.EffectRefund).ID
	switch status {
	case domain.EffectPending:
		b.lost("refunds.create", proof)
		b.turn(id, domain.EffectRefund)
	case domain.EffectInDoubt:
		b.lost("refunds.create", proof)
		b.doubt(id, domain.EffectRefund)
	case domain.EffectParked:
		if act != operator.Discard || !proof {
			b.lost("refunds.create", proof)
			b.turn(id, domain.EffectRefund)
		}
		b.set(e, domain.EffectParked)
	case domain.EffectDone:
		b.work(id, domain.EffectRefund)
	case domain.EffectNotNeeded:
		b.work(id, domain.EffectRefund)
		b.set(e, status)
	case domain.EffectDiscarded:
		b.set(e, domain.EffectParked)
		b.discarded(e)
	}
	return id, e
}

// ask asks for a refund as the API does.
func (b *moneyBed) ask(id domain.BookingID, amount int64) {
	b.Helper()
	desk := payments.NewDesk(b.bookings, noWaker{}, payments.CardLimits{}, quiet)
	answer, err := desk.Refund(b.ctx, payments.Ask{Client: b.client, Booking: id, Key: domain.NewID[domain.EffectID]().String()},
		payments.RefundRequest{Amount: amount, Reason: "the room was too loud", By: "finance@example.org"},
		func(d payments.RefundDecision) (int, []byte, error) { return 201, []byte(d.Refusal), nil })
	require.NoError(b, err)
	require.Empty(b, string(answer.Body))
}

func (b *moneyBed) eventThat(status domain.EffectStatus) (domain.BookingID, domain.EffectID) {
	b.Helper()
	id := b.confirmed()
	e := b.effect(id, domain.EffectPublish).ID
	switch status {
	case domain.EffectPending:
	case domain.EffectDone:
		b.work(id, domain.EffectPublish)
	case domain.EffectParked, domain.EffectInDoubt, domain.EffectNotNeeded:
		b.set(e, status)
	case domain.EffectDiscarded:
		b.set(e, domain.EffectParked)
		b.discarded(e)
	}
	return id, e
}
