// Package operator is the operators' desk: what is stuck and why, everything that has happened to a booking on one line of
// time, and the acts by which a person sets things going again.
//
// The order of reading: [Desk.Overview], [Desk.List] and [Desk.Timeline] are what a person sees; [Desk.Preview] asks the
// provider and says what an act would do now; [Desk.Do] does it, and leaves exactly one row in operator_actions in the same
// transaction; [Desk.Approve] is the second person's; [Desk.StartRun] does one act to many effects.
//
// It is what the command line, the API and the console have in common: none of them decides anything by itself. It owns the
// tables operator_requests, operator_runs and operator_run_items. What an act does to an effect is package outbox's, and
// what it does to money is package payments'.
package operator
