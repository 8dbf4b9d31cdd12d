package payments_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/internal/testsize"
	"holdfast/outbox"
	"holdfast/payments"
	"holdfast/payments/stripesim"
)

// The matrix: each send × each fault × where the worker dies × who carries on. A cell is a booking of its own. The usual run has
// each send × fault × death, and each fault × death × heir, with one heir for each of the former; the full one has every cell.
var (
	matrixSends  = []domain.Operation{domain.OpCreate, domain.OpUpdate, domain.OpConfirm, domain.OpCancel}
	matrixFaults = []string{
		"", "reset_before", "reset_after", "reset_after_reused", "hang_after", "slow", "error_500_before", "error_500_after", "partial_500",
		"error_502", "error_503", "error_503_after", "error_504", "error_424", "html_502", "bad_body",
		"in_use_409", "lock_timeout_429", "rate_limit_429", "unauthorized_401",
	}
	matrixDeaths = []string{"before the send", "after the send", "after the settling commit"}
	matrixHeirs  = []string{"same worker", "other worker", "reconciler", "operator"}
)

type cell struct {
	send  domain.Operation
	fault string
	death string
	heir  string
}

func (c cell) String() string { return fmt.Sprintf("%s/%s/%s/%s", c.send, c.fault, c.death, c.heir) }

// partial_500 leaves half a charge, which only a confirm can.
func (c cell) exists() bool { return c.fault != "partial_500" || c.send == domain.OpConfirm }

// mayFail tells whether the cell may also end failed with a proven zero: the provider has stored an error under the key of
// a confirm, or of the update before it, and nobody may try again under another.
func (c cell) mayFail() bool {
	return c.send == domain.OpConfirm && c.fault == "error_500_before" || c.send == domain.OpUpdate && strings.HasPrefix(c.fault, "error_500")
}

// G3, G4, G5, G7: expected of every cell, stated first: a created or confirmed booking ends confirmed with one succeeded
// charge (or, where mayFail says so, failed with none), a fenced one expired with none; one confirm key, no key that ran
// twice, one event of each kind. All totals come from the provider's ledger.
func TestMatrix(t *testing.T) { //nolint:tparallel // the groups must have ended before they are counted
	t.Parallel()
	var ran, all atomic.Int64
	t.Run("cells", func(t *testing.T) {
		for _, send := range matrixSends {
			for _, heir := range matrixHeirs {
				t.Run(string(send)+" "+heir, func(t *testing.T) {
					t.Parallel()
					cells := matrixCells(send, heir)
					all.Add(int64(len(cells)))
					ran.Add(runCells(t, cells))
				})
			}
		}
	})
	t.Logf("matrix: %d cells of %d ran", ran.Load(), all.Load())
	require.Equal(t, all.Load(), ran.Load(), "a cell did not run")
}

func matrixCells(send domain.Operation, heir string) (cells []cell) {
	for f, fault := range matrixFaults {
		for d, death := range matrixDeaths {
			if c := (cell{send, fault, death, heir}); c.exists() && inTurn(heir, slices.Index(matrixSends, send)+f+d) {
				cells = append(cells, c)
			}
		}
	}
	return cells
}

// inTurn tells whether it is an heir's turn: the usual run has one for each combination of the rest, the full one all.
func inTurn(heir string, combination int) bool {
	return testsize.Full() || matrixHeirs[combination%len(matrixHeirs)] == heir
}

// runCells runs cells that share a database and a provider, as bookings do, and returns how many ran.
func runCells(t *testing.T, cells []cell) int64 {
	t.Helper()
	b := setup(t)
	b.config.MaxSends, b.config.Lease = 4, 10*time.Second
	var ran, confirmed atomic.Int64
	t.Run("all", func(t *testing.T) {
		for i, c := range cells {
			t.Run(c.String(), func(t *testing.T) {
				t.Parallel()
				own := *b
				own.TB, own.ctx = t, t.Context()
				own.since = b.newest()
				own.start = b.start.Add(time.Duration(i) * time.Hour)
				if own.cell(c) == "confirmed" {
					confirmed.Add(1)
				}
				ran.Add(1)
			})
		}
	})
	require.Len(t, b.sim.Ledger().Succeeded(""), int(confirmed.Load()), "one succeeded charge for each confirmed booking")
	require.NoError(t, b.sim.Ledger().Check())
	return ran.Load()
}

// cell runs one cell and returns where its booking ended.
func (b *bed) cell(c cell) string {
	b.Helper()
	id := b.bookFor(c)
	kind := domain.EffectCharge
	if c.send == domain.OpCancel {
		kind = domain.EffectCancel
	}
	if c.fault != "" {
		fault := stripesim.Fault{Operation: "payment_intents." + string(c.send), KeyMatch: b.paymentID(id), Fault: c.fault}
		if c.fault == "hang_after" || c.fault == "slow" {
			fault.DelayMS = 2 * int(stripeTimeout.Milliseconds())
		}
		if c.fault == "partial_500" {
			fault.DelayMS = 20
		}
		b.sim.AddFault(fault)
	}
	gateway := &mortal{Gateway: b.gateway, send: c.send, death: c.death}
	worker := b.engineOn(gateway)
	job := outbox.Job{Effect: b.effect(id, kind), Kind: kind}
	b.runOnce(worker, job)
	gateway.death = "" // whoever is the same worker lives on from here
	switch c.heir {
	case "same worker":
		b.work(worker, id, kind)
	case "other worker":
		b.work(b.engine(), id, kind)
	case "reconciler":
		hasty := *b
		hasty.config.MaxSends = 1 // hands over as soon as it can
		b.work(hasty.engine(), id, kind)
	case "operator":
		_, err := outbox.Replay(b.ctx, b.db.Pool, job.Effect, "ops@example.org", "matrix")
		var refused *outbox.RefusedError
		require.True(b, err == nil || errors.As(err, &refused), "%v", err)
		b.work(b.engine(), id, kind)
	}
	b.reconcile(b.engine(), id)
	b.agree(id)
	booking, _, _ := b.statuses(id)
	switch {
	case c.send == domain.OpCancel:
		require.Equal(b, "expired", booking, b.tale(id))
	case c.mayFail():
		require.Contains(b, []string{"confirmed", "failed"}, booking, b.tale(id))
	default:
		require.Equal(b, "confirmed", booking, b.tale(id))
	}
	return booking
}

// bookFor makes a booking whose next send is the cell's: for an update, one whose first card was declined; for a cancel, one
// whose intent is made and whose hold is over.
func (b *bed) bookFor(c cell) domain.BookingID {
	b.Helper()
	key := domain.NewID[domain.EffectID]().String()
	if c.send == domain.OpUpdate {
		id := b.bookAt(key, "pm_card_chargeDeclined")
		b.work(b.engine(), id, domain.EffectCharge)
		require.Equal(b, 202, b.change(id, key, "pm_card_visa"))
		return id
	}
	id := b.bookAt(key, "pm_card_visa")
	if c.send != domain.OpCancel {
		return id
	}
	fault := b.sim.AddFault(stripesim.Fault{Operation: "payment_intents.confirm", KeyMatch: b.paymentID(id), Fault: "error_503", Times: -1})
	b.work(b.engine(), id, domain.EffectCharge)
	b.expire(id)
	for {
		worked, err := b.engine().SweepHold(b.ctx)
		require.NoError(b, err)
		if booking, _, _ := b.statuses(id); booking != "held" {
			break
		}
		require.True(b, worked || b.ctx.Err() == nil)
	}
	b.sim.RemoveFault(fault)
	return id
}

func (b *bed) paymentID(id domain.BookingID) string {
	b.Helper()
	var payment string
	b.scan(`SELECT id::text FROM payments WHERE booking_id = $1`, &payment, id)
	return payment
}

// runOnce runs a job once, up to the worker's death.
func (b *bed) runOnce(p *payments.Payments, job outbox.Job) {
	b.Helper()
	defer func() {
		if v := recover(); v != nil {
			err, ok := v.(error)
			if !ok || !errors.Is(err, errDied) {
				panic(v)
			}
		}
	}()
	handle := p.Charge
	if job.Kind == domain.EffectCancel {
		handle = p.Fence
	}
	_, err := handle(b.ctx, job)
	require.NoError(b, err)
}

var errDied = errors.New("the worker died")

// mortal is the real gateway in a worker that dies at its first send of one kind.
type mortal struct {
	payments.Gateway
	send  domain.Operation
	death string
}

func (m *mortal) Send(ctx context.Context, c payments.Call) payments.Outcome {
	if c.Operation == m.send && m.death == "before the send" {
		panic(errDied)
	}
	out := m.Gateway.Send(ctx, c)
	if c.Operation == m.send && m.death == "after the send" {
		panic(errDied)
	}
	return out
}

// newest is the journal's newest sequence number, or 1.
func (b *bed) newest() int64 {
	seq := int64(1)
	if journal := b.sim.Journal(b.since); len(journal) > 0 {
		seq = journal[len(journal)-1].Seq
	}
	return seq
}
