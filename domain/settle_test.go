package domain_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/domain"
)

const current, old = int64(7), int64(6)

// states enumerates every state that rows may be in.
func states() []domain.State {
	var all []domain.State
	for _, booking := range domain.BookingStatuses() {
		for _, payment := range domain.PaymentStatuses() {
			for _, intent := range []bool{false, true} {
				for _, reason := range reasonsOf(booking) {
					all = append(all, domain.State{Booking: booking, Reason: reason, Payment: payment, HasIntent: intent, Version: current})
				}
			}
		}
	}
	return all
}

func reasonsOf(b domain.BookingStatus) []domain.EndingReason {
	if b == domain.BookingHeld || b == domain.BookingConfirmed {
		return []domain.EndingReason{""}
	}
	return domain.EndingReasons()
}

// The legal moves, written down from the state diagrams of docs/architecture.md and not from the code. Rows are from,
// members to; staying is always legal and not listed.
var (
	legalBooking = map[domain.BookingStatus][]domain.BookingStatus{
		domain.BookingHeld:      {domain.BookingConfirmed, domain.BookingEnding, domain.BookingExpired, domain.BookingCancelled, domain.BookingFailed},
		domain.BookingEnding:    {domain.BookingConfirmed, domain.BookingExpired, domain.BookingCancelled, domain.BookingFailed},
		domain.BookingConfirmed: {domain.BookingCancelled}, // by the customer alone, see TestCancelAndTakesCard_WholeMatrix
		domain.BookingExpired:   {},
		domain.BookingCancelled: {},
		domain.BookingFailed:    {},
	}
	open = []domain.PaymentStatus{
		domain.PaymentPending, domain.PaymentProcessing, domain.PaymentRequiresAction, domain.PaymentDeclined,
		domain.PaymentInDoubt, domain.PaymentSucceeded, domain.PaymentCanceled, domain.PaymentRefused,
	}
	legalPayment = map[domain.PaymentStatus][]domain.PaymentStatus{
		domain.PaymentPending:        open,
		domain.PaymentProcessing:     open,
		domain.PaymentRequiresAction: open,
		domain.PaymentDeclined:       open,
		domain.PaymentInDoubt:        open,
		domain.PaymentSucceeded:      {},
		domain.PaymentCanceled:       {domain.PaymentSucceeded}, // a success outranks a cancellation
		domain.PaymentRefused:        {domain.PaymentSucceeded},
	}
)

// The whole matrix: every state × every fact × current and old observation.
func TestSettle_WholeMatrix(t *testing.T) {
	t.Parallel()
	for _, s := range states() {
		for _, fact := range domain.Facts() {
			for _, version := range []int64{current, old} {
				m := domain.Settle(s, domain.Observation{Fact: fact, Version: version})
				check(t, fmt.Sprintf("%+v %s v%d -> %+v", s, fact, version, m), s, fact, version, m)
			}
		}
	}
}

// check states what must hold of any move, by the guarantee that it serves.
func check(t *testing.T, name string, s domain.State, fact domain.Fact, version int64, m domain.Move) {
	t.Helper()
	require.True(t, m.Booking == s.Booking || slices.Contains(legalBooking[s.Booking], m.Booking), "illegal booking move: %s", name)
	require.True(t, m.Payment == s.Payment || slices.Contains(legalPayment[s.Payment], m.Payment), "illegal payment move: %s", name)
	if !m.Changed {
		require.Equal(t, s.Booking, m.Booking, name)
		require.Equal(t, s.Payment, m.Payment, name)
		require.Empty(t, m.Event, name)
		require.False(t, m.Release || m.Fence || m.Refund != "", name)
	}
	require.False(t, m.Changed && s.Booking == domain.BookingConfirmed && m.Booking != s.Booking, "nothing that is seen ends what is paid: %s", name)
	// G4: a slot with an intent is released only by a final proof.
	if m.Release && s.HasIntent {
		require.Contains(t, []domain.Fact{domain.FactCanceled, domain.FactSucceeded}, fact, "G4: %s", name)
	}
	require.Equal(t, m.Release, m.Changed && m.Booking.Ended() && !s.Booking.Ended(), "the slot is free exactly when the booking is over: %s", name)
	// G3: whoever is confirmed has paid; whoever has paid and is over gets the money back.
	require.False(t, m.Changed && m.Booking == domain.BookingConfirmed && m.Payment != domain.PaymentSucceeded, name)
	require.Equal(t, m.Refund != "", m.Changed && m.Payment == domain.PaymentSucceeded && m.Booking.Ended(), name)
	if m.Refund != "" { // by policy only for whoever has asked before the end; what comes after it goes back in full
		require.Equal(t, m.Refund == domain.RefundCancellation, s.Booking == domain.BookingEnding && s.Reason == domain.EndCancel, name)
	}
	// Older than the newest send: only what is final may count.
	if version != s.Version && fact != domain.FactSucceeded && fact != domain.FactCanceled {
		require.False(t, m.Changed, "an old observation settled something: %s", name)
	}
	// What is final applies in every open state, whatever its age.
	if fact == domain.FactSucceeded {
		require.Equal(t, domain.PaymentSucceeded, m.Payment, name)
	}
	if fact == domain.FactCanceled && !s.Payment.Closed() && s.Booking != domain.BookingConfirmed {
		require.Equal(t, domain.PaymentCanceled, m.Payment, name)
	}
	// G6: an event tells of every change that a booking's owner can see, and of nothing else.
	if m.Booking != s.Booking && m.Booking != domain.BookingEnding {
		require.Equal(t, string(m.Booking), string(m.Event), "G6: %s", name)
	}
	require.Equal(t, m.Fence, m.Booking == domain.BookingEnding && s.Booking != domain.BookingEnding, name)
}

func TestSettle_Examples(t *testing.T) {
	t.Parallel()
	held := domain.State{Booking: domain.BookingHeld, Payment: domain.PaymentPending, HasIntent: true, Version: current}
	ending := func(r domain.EndingReason) domain.State {
		return domain.State{Booking: domain.BookingEnding, Reason: r, Payment: domain.PaymentInDoubt, HasIntent: true, Version: current}
	}
	for name, tc := range map[string]struct {
		from domain.State
		fact domain.Fact
		want domain.Move
	}{
		"a success confirms": {held, domain.FactSucceeded, domain.Move{
			Changed: true, Booking: "confirmed", Payment: "succeeded", Event: "confirmed", Charge: "done", Cancel: "done",
		}},
		"a success that the fence finds confirms": {ending(domain.EndExpire), domain.FactSucceeded, domain.Move{
			Changed: true, Booking: "confirmed", Payment: "succeeded", Event: "confirmed", Charge: "done", Cancel: "done",
		}},
		"a success does not undo the customer's cancellation": {ending(domain.EndCancel), domain.FactSucceeded, domain.Move{
			Changed: true, Booking: "cancelled", Reason: "cancel", Payment: "succeeded", Event: "cancelled", Charge: "done", Cancel: "done",
			Release: true, Refund: "cancellation",
		}},
		"a decline leaves the booking held": {held, domain.FactDeclined, domain.Move{
			Changed: true, Booking: "held", Payment: "declined", Event: "payment_declined", Charge: "done",
		}},
		"a proved cancellation expires": {ending(domain.EndExpire), domain.FactCanceled, domain.Move{
			Changed: true, Booking: "expired", Reason: "expire", Payment: "canceled", Event: "expired", Charge: "not_needed", Cancel: "done", Release: true,
		}},
		"an unfenceable doubt fails": {ending(domain.EndDoubt), domain.FactCanceled, domain.Move{
			Changed: true, Booking: "failed", Reason: "doubt", Payment: "canceled", Event: "failed", Charge: "not_needed", Cancel: "done", Release: true,
		}},
		"a doubt changes no booking": {held, domain.FactDoubt, domain.Move{
			Changed: true, Booking: "held", Payment: "in_doubt", Charge: "in_doubt",
		}},
		"a definite refusal with an intent is fenced first": {held, domain.FactRefused, domain.Move{
			Changed: true, Booking: "ending", Reason: "refuse", Payment: "pending", Charge: "not_needed", Fence: true,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tc.want, domain.Settle(tc.from, domain.Observation{Fact: tc.fact, Version: current}))
		})
	}
}

func TestEnd_WholeMatrix(t *testing.T) {
	t.Parallel()
	for _, s := range states() {
		for _, reason := range domain.EndingReasons() {
			m := domain.End(s, reason)
			name := fmt.Sprintf("%+v %s -> %+v", s, reason, m)
			switch {
			case s.Booking != domain.BookingHeld || s.Payment == domain.PaymentSucceeded:
				require.False(t, m.Changed, name)
			case s.HasIntent:
				require.True(t, m.Fence && !m.Release, "G4: a slot was released without a fence: %s", name)
				require.Equal(t, domain.BookingEnding, m.Booking, name)
			default:
				require.True(t, m.Release && !m.Fence, name)
				require.Equal(t, reason.End(), m.Booking, name)
			}
		}
	}
}

// A customer's cancellation over every state: it ends what is paid, and then money goes back; ends what is held as any end does; becomes the reason of what is ending
// unpaid, and moves nothing else. Another card is taken by a held booking whose card was declined, and by no other.
func TestCancelAndTakesCard_WholeMatrix(t *testing.T) {
	t.Parallel()
	for _, s := range states() {
		m := domain.Cancel(s)
		name := fmt.Sprintf("%+v -> %+v", s, m)
		switch {
		case s.Booking == domain.BookingConfirmed && s.Payment == domain.PaymentSucceeded:
			require.Equal(t, domain.Move{
				Changed: true, Booking: "cancelled", Reason: "cancel", Payment: "succeeded", Event: "cancelled", Release: true, Refund: "cancellation",
			}, m, name)
			require.Contains(t, legalBooking[s.Booking], m.Booking)
		case s.Booking == domain.BookingEnding && s.Reason != domain.EndCancel && s.Payment != domain.PaymentSucceeded:
			require.Equal(t, domain.Move{Changed: true, Booking: s.Booking, Reason: domain.EndCancel, Payment: s.Payment}, m, name)
		case s.Booking == domain.BookingHeld:
			require.Equal(t, domain.End(s, domain.EndCancel), m, name)
		default:
			require.False(t, m.Changed || m.Release || m.Fence || m.Refund != "", name)
			require.Equal(t, []any{s.Booking, s.Reason, s.Payment}, []any{m.Booking, m.Reason, m.Payment}, name)
		}
		require.Equal(t, s.Booking == domain.BookingHeld && s.Payment == domain.PaymentDeclined && s.HasIntent, domain.TakesCard(s), name)
	}
}
