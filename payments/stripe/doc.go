// Package stripe sends to Stripe and says what is known of each send afterwards. It is the only package that speaks
// Stripe, and it stores nothing: what to send, under which key, and what follows from the outcome is decided elsewhere.
//
// It promises:
//
//   - Send makes one send, under the key it was given, or none. It never retries, and never sends without a key.
//   - What is not understood is Unknown. A class other than that rests on Stripe's own answer to this send, or on the
//     fact that no byte of it was written to any connection.
//   - A read tells what Stripe said, whole, or is an error. A listing with a missing page is an error, never a short
//     listing.
//   - No text of Stripe's leaves the package: its messages hold client secrets. Outcomes and errors are written here,
//     from status, code and request id.
//
// One thing happens below it: if a kept-alive connection breaks, net/http may send the same bytes once more under the
// same key. That is harmless to the money, but the last error then speaks of the second send alone, so that Send counts
// what was written and reads no error for it.
package stripe
