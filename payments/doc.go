// Package payments takes the money for a booking at most once, and leaves no outcome unknown.
//
// The order of reading: [Payments.Charge] records a send, makes it with no transaction open, and settles what came
// back; [Payments.Fence] proves that an ending booking's intent can take no money; settle.go is the single door through
// which worker, reconciler and operator move a payment and its booking; [Payments.Resolve] ends one doubt by reading
// the provider.
//
// It owns the tables payments and provider_calls. It knows the provider only as the port [Gateway] and speaks no HTTP.
package payments
