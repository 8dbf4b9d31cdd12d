// Command local runs the whole of Holdfast on this machine: PostgreSQL, NATS with JetStream, a simulated Stripe, and the
// three binaries, on loopback ports.
//
//	local up      keeps the stack running, starts again what dies, and describes it in .holdfast/stack.json and, for a
//	              shell, .holdfast/env
//	local demo    runs a fresh stack through a booking, a lost response and a replay, checks the outcome, and stops it
//
// The promise: nothing is left behind. An interrupt stops everything in order, and if this process is killed, what it
// started dies with it. What DATABASE_URL, NATS_URL or STRIPE_API_BASE names is used instead of a server of its own; every
// other variable of the environment is passed on to the binaries.
//
// It is a way to try Holdfast out and to test it, and not a way to run it in production.
package main
