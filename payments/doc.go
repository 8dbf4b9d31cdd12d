// Package payments takes the money for a booking at most once, and leaves no outcome unknown.
//
// The order of reading: [Payments.Charge] records a send, makes it with no transaction open, and settles what came
// back; [Payments.Fence] proves that an ending booking's intent can take no money; settle.go is the single door through
// which worker, reconciler and operator move a payment and its booking; [Payments.Resolve] ends one doubt by reading
// the provider; [Payments.Refund] gives back the money of a booking that had ended before it was taken.
//
// [ReadBalance] says what is left of a payment after its refunds and disputes.
//
// What the provider tells is stored by [Inbox] and swept up by [Payments.SweepEvents]; [Payments.SettleEvent] takes each event as
// a hint to look, and never for the truth.
//
// It owns the tables payments, card_changes, provider_calls, refunds, disputes, provider_events and provider_events_sweep. It knows the provider only as the port [Gateway] and speaks no HTTP.
package payments
