// Package simulate runs the whole system through seeded schedules, and checks what is left of each (G1 to G7, G9).
//
// The real bookings, payments and outbox code runs on a real PostgreSQL, a real JetStream and the simulated provider over real
// HTTP, in one process. Everything that happens is one act of the table in acts.go, picked by the seed: requests, jobs,
// reconcilers, operators, customers, faults, clock steps, cuts of the database and trouble with the broker. Whoever acts is an
// actor, a coroutine that pauses before and after each call of the provider and the broker and before its transactions;
// one at a time runs, and the seed says who goes on, who dies and whose connection is cut. In the end everything is healed,
// everybody works until nothing is left to do, and the checker (check.go), which shares no decision with what it checks,
// compares rows, stream and the provider's ledger and journal.
//
// The same seed is the same schedule, to the byte of its history. No wall clock decides anything: the database's clock is
// virtual (clock.go), back-offs are nanoseconds, and what a provider or a network does slowly is done when the seed says so.
package simulate
