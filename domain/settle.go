package domain

// Fact is what the provider has shown about a payment. The zero value shows nothing.
type Fact string

// The facts, each with what proves it.
const (
	FactNothing    Fact = ""                // not executed so far, or unknown: changes nothing
	FactSucceeded  Fact = "succeeded"       // the intent says so, or a succeeded charge is listed for it
	FactCanceled   Fact = "canceled"        // the intent says so, and no succeeded or pending charge was listed after it
	FactDeclined   Fact = "declined"        // of the newest card's confirm
	FactAction     Fact = "requires_action" // confirmed, and the customer must authenticate
	FactProcessing Fact = "processing"      // accepted, not final
	FactRefused    Fact = "refused"         // a definite refusal that no card cures
	FactDoubt      Fact = "doubt"           // ours: the bounded number of sends is spent and the outcome still unknown
)

// Facts lists every fact.
func Facts() []Fact {
	return []Fact{FactNothing, FactSucceeded, FactCanceled, FactDeclined, FactAction, FactProcessing, FactRefused, FactDoubt}
}

// State is all that settling depends on, read under the booking's lock.
type State struct {
	Booking   BookingStatus
	Reason    EndingReason
	Payment   PaymentStatus
	HasIntent bool  // the id of a provider intent is committed
	Version   int64 // of the payment: raised by every recorded send and every settle that changes something
}

// Observation is a fact with the payment's version as it was read *before* the request that showed the fact began.
type Observation struct {
	Fact    Fact
	Version int64
}

// Move is what an observation changes. Its zero value changes nothing.
type Move struct {
	Changed bool
	Stale   bool // the observation was made before the newest send: dropped, read again
	Booking BookingStatus
	Reason  EndingReason
	Payment PaymentStatus
	Event   EventType    // empty: nothing worth telling
	Charge  EffectStatus // what becomes of the open charge effect; empty: it stays
	Cancel  EffectStatus // what becomes of the open cancel effect; empty: it stays
	Release bool         // the slot becomes free
	Fence   bool         // a cancel effect must prove that the intent can take no money
	Refund  RefundReason // why money that was taken must go back; empty: it need not
}

// Settle is the transition function behind the single door through which a payment and its booking move. A success and
// a proved cancellation are final and always apply, and a success outranks a cancellation; everything else applies only
// while it is newer than every send, the payment is open and the booking is held.
func Settle(s State, o Observation) Move {
	stay := Move{Booking: s.Booking, Reason: s.Reason, Payment: s.Payment}
	switch o.Fact {
	case FactSucceeded:
		return succeed(s, stay)
	case FactCanceled:
		if s.Payment.Closed() || s.Booking == BookingConfirmed {
			return stay
		}
		return conclude(s, stay, PaymentCanceled, EndRefuse)
	case FactDeclined, FactAction, FactProcessing, FactRefused, FactDoubt:
		if s.Payment.Closed() || s.Booking != BookingHeld {
			return stay
		}
		if o.Version != s.Version {
			stay.Stale = true
			return stay
		}
		return whileHeld(s, stay, o.Fact)
	case FactNothing:
		return stay
	default:
		return stay
	}
}

func succeed(s State, m Move) Move {
	if s.Payment == PaymentSucceeded {
		return m
	}
	m.Changed = true
	m.Payment = PaymentSucceeded
	m.Charge, m.Cancel = EffectDone, EffectDone
	switch {
	case s.Booking.Ended():
		m.Refund = RefundLateSuccess
	case s.Booking == BookingEnding && s.Reason == EndCancel:
		m.Booking, m.Event, m.Release, m.Refund = BookingCancelled, EventCancelled, true, RefundCancellation
	default:
		m.Booking, m.Reason, m.Event = BookingConfirmed, "", EventConfirmed
	}
	return m
}

// conclude ends a booking whose payment can take no money any more.
func conclude(s State, m Move, payment PaymentStatus, ifHeld EndingReason) Move {
	m.Changed = true
	m.Payment = payment
	m.Charge, m.Cancel = EffectNotNeeded, EffectDone
	if s.Booking == BookingHeld {
		m.Reason = ifHeld
	}
	if s.Booking == BookingHeld || s.Booking == BookingEnding {
		m.Booking = m.Reason.End()
		m.Event = EventType(m.Booking)
		m.Release = true
	}
	return m
}

func whileHeld(s State, m Move, fact Fact) Move {
	switch fact {
	case FactDeclined:
		m.Payment, m.Event, m.Charge = PaymentDeclined, EventPaymentDeclined, EffectDone
	case FactAction:
		m.Payment, m.Event, m.Charge = PaymentRequiresAction, EventActionRequired, EffectDone
	case FactProcessing:
		m.Payment, m.Charge = PaymentProcessing, EffectInDoubt
	case FactDoubt:
		m.Payment, m.Charge = PaymentInDoubt, EffectInDoubt
	case FactRefused:
		if s.HasIntent {
			return End(s, EndRefuse)
		}
		return conclude(s, m, PaymentRefused, EndRefuse)
	case FactNothing, FactSucceeded, FactCanceled:
		return m
	default:
		return m
	}
	if m.Payment == s.Payment { // seen before: the open effect is closed all the same
		m.Event = ""
	}
	m.Changed = m.Payment != s.Payment
	return m
}

// TakesCard tells whether the customer may try another card: the one before is known to be declined, and the slot is still
// held for them. Whatever else may still take money has to end first.
func TakesCard(s State) bool {
	return s.Booking == BookingHeld && s.Payment == PaymentDeclined && s.HasIntent
}

// Cancel is what a customer's cancellation changes: a confirmed booking, which is paid, is over at once; a held one begins to
// end; and of one that is ending already it becomes the reason, so that money which the fence finds taken goes back. A booking
// that is over does not move.
func Cancel(s State) Move {
	if s.Booking == BookingConfirmed && s.Payment == PaymentSucceeded {
		return Move{
			Changed: true, Booking: BookingCancelled, Reason: EndCancel, Payment: s.Payment, Event: EventCancelled,
			Release: true, Refund: RefundCancellation,
		}
	}
	if s.Booking == BookingEnding && s.Reason != EndCancel && s.Payment != PaymentSucceeded {
		return Move{Changed: true, Booking: s.Booking, Reason: EndCancel, Payment: s.Payment}
	}
	return End(s, EndCancel)
}

// End begins the end of a held booking. With no intent committed nothing was ever confirmed, and it ends at once;
// otherwise it is fenced first: the slot stays taken until the provider proves that the intent can take no money.
// A booking that is not held does not move.
func End(s State, reason EndingReason) Move {
	m := Move{Booking: s.Booking, Reason: s.Reason, Payment: s.Payment}
	if s.Booking != BookingHeld || s.Payment == PaymentSucceeded {
		return m
	}
	if !s.HasIntent {
		return conclude(s, m, PaymentCanceled, reason)
	}
	m.Changed, m.Fence = true, true
	m.Booking, m.Reason = BookingEnding, reason
	m.Charge = EffectNotNeeded
	return m
}
