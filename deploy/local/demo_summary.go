package main

import (
	"context"
	"slices"
)

// summarise reads the outcome from the provider's ledger, the database and the stream, prints it, and fails unless all
// of it is as promised.
func (d *demo) summarise(ctx context.Context) error {
	err := poll(ctx, "the last effects to be carried out", func() (bool, error) {
		left, err := d.witness.unfinished(ctx, d.bookings)
		return left == 0, err
	})
	if err != nil {
		return err
	}
	d.out.title("Summary, read from the provider's ledger, the database and the stream")
	sum := &tally{out: d.out}
	for _, part := range []func(context.Context, *tally) error{d.sumMoney, d.sumDoubt, d.sumReplay, d.sumEvents} {
		if err := part(ctx, sum); err != nil {
			return err
		}
	}
	d.out.line("")
	if sum.broken > 0 {
		return &unmetError{broken: sum.broken}
	}
	return nil
}

// tally prints lines of the summary and counts those that do not hold.
type tally struct {
	out    *printer
	broken int
}

func (t *tally) line(holds bool, format string, args ...any) {
	if !holds {
		t.broken++
	}
	t.out.verdict(holds, format, args...)
}

func (d *demo) sumMoney(ctx context.Context, t *tally) error {
	confirmed, err := d.witness.confirmed(ctx, d.bookings)
	if err != nil {
		return err
	}
	t.line(confirmed == len(d.bookings), "bookings confirmed: %d of %d", confirmed, len(d.bookings))
	charges, err := d.sim.charges(ctx)
	if err != nil {
		return err
	}
	charges = succeeded(charges)
	once := len(charges) == len(d.bookings)
	for _, booking := range d.bookings {
		once = once && count(charges, func(c charge) bool { return c.Metadata["booking_id"] == booking }) == 1
	}
	var sum int64
	for _, c := range charges {
		sum += c.Amount - c.Refunded
	}
	t.line(once, "succeeded charges: %d, one for each booking, %d in minor units", len(charges), sum)
	return nil
}

func (d *demo) sumDoubt(ctx context.Context, t *tally) error {
	entries, err := d.sim.journal(ctx)
	if err != nil {
		return err
	}
	intent, err := d.witness.intent(ctx, d.bookings[1])
	if err != nil {
		return err
	}
	lost := count(entries, func(e wireEntry) bool { return e.Fault != "" && e.Operation == "payment_intents.confirm" })
	left, err := d.witness.unfinished(ctx, d.bookings)
	if err != nil {
		return err
	}
	t.line(lost > 0 && left == 0, "confirms without an answer: %d; doubts left: %d", lost, left)
	var keys []string
	executed := 0
	for _, e := range entries {
		if e.Object != intent || e.Operation != "payment_intents.confirm" {
			continue
		}
		keys = append(keys, e.IdempotencyKey)
		if e.Executed {
			executed++
		}
	}
	sends := len(keys)
	slices.Sort(keys)
	keys = slices.Compact(keys)
	t.line(executed == 1 && len(keys) == 1, "confirms sent for the doubtful booking: %d, under %d key(s), carried out: %d", sends, len(keys), executed)
	return nil
}

func (d *demo) sumReplay(ctx context.Context, t *tally) error {
	actions, err := d.witness.actions(ctx, d.replayed)
	if err != nil {
		return err
	}
	after, err := d.sim.charges(ctx)
	if err != nil {
		return err
	}
	before, now := len(succeeded(d.chargesBefore)), len(succeeded(after))
	t.line(actions == 1 && before == now, "replays accepted and audited: %d; succeeded charges before them: %d, after them: %d", actions, before, now)
	return nil
}

func (d *demo) sumEvents(ctx context.Context, t *tally) error {
	for _, booking := range d.bookings {
		events, err := d.witness.events(ctx, booking)
		if err != nil {
			return err
		}
		once := true
		var types []string
		for _, e := range events {
			deliveries, err := d.witness.deliveries(ctx, e.Stream)
			if err != nil {
				return err
			}
			types = append(types, e.Type)
			once = once && deliveries[e.ID] == 1
		}
		t.line(once && slices.Equal(types, []string{"held", "confirmed"}),
			"events of booking %s: %v, each acknowledged and in the stream once", booking, types)
	}
	return nil
}

func succeeded(charges []charge) []charge {
	return slices.DeleteFunc(slices.Clone(charges), func(c charge) bool { return c.Status != "succeeded" })
}

func count[T any](all []T, which func(T) bool) int {
	n := 0
	for _, one := range all {
		if which(one) {
			n++
		}
	}
	return n
}
