// Package stripesim is a Stripe that runs on loopback: real HTTP, real state, and failures on demand. Any Stripe library works
// against it when its base URL is changed; nothing else about the integration has to know.
//
// What it promises:
//
//   - At most one successful charge per PaymentIntent, whatever is sent, in whatever order, by however many clients.
//   - Idempotency keys as Stripe documents them: the first request whose execution began decides status and body for the life of
//     the key, a 500 included; refused parameters, 401, 409 and 429 leave the key free; a forgotten key executes as new.
//   - A fault says on which side of the execution the answer was lost, and the journal and the ledger say what really happened.
//     A test can therefore count executions and charges, not requests and answers.
//   - Nothing is executed by guesswork: a parameter that Stripe knows and the simulator does not model is refused by name.
//
// The control surface lives beside the API under /_sim/ (journal, ledger, faults, clock, actions, webhooks, reset); the methods of
// [Simulator] are the same things for Go tests. README.md lists the faults.
//
// Time is virtual: the wall clock plus what [Simulator.Advance] added. Everything Stripe would date (created, key pruning) follows
// it, and an object keeps the date it was born with. Delays of faults run on the wall clock.
//
// Not modelled: manual payouts, Connect.
// The package shares no code with what it tests.
package stripesim
