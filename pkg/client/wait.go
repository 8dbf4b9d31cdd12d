package client

import (
	"context"
	"fmt"
	"time"
)

const (
	firstLook = 250 * time.Millisecond // payments are decided in a second or two as a rule
	lastLook  = 5 * time.Second
)

// WaitForBooking reads a booking until it is settled, or until its payment waits for the customer (requires_action,
// declined), and returns it as it then is. If the context ends first, it returns the booking as last seen, with the
// context's error: nothing is changed by waiting in vain, and the booking goes on.
func (c *Client) WaitForBooking(ctx context.Context, id string) (Booking, error) {
	if _, limited := ctx.Deadline(); !limited {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.timeout)
		defer cancel()
	}
	var seen Booking
	for pause := firstLook; ; pause = min(2*pause, lastLook) {
		b, err := c.GetBooking(ctx, id)
		if err != nil {
			return seen, fmt.Errorf("wait for booking: %w", err)
		}
		if seen = b; b.Status.Settled() || waitsForCustomer(b) {
			return b, nil
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return b, fmt.Errorf("wait for booking %s, which is %s: %w", b.ID, b.Status, ctx.Err())
		}
	}
}

func waitsForCustomer(b Booking) bool {
	return b.Status == Held && (b.Payment.Status == PaymentRequiresAction || b.Payment.Status == PaymentDeclined)
}
