// Package outbox carries out an effect that was committed with its cause, at least once.
//
// The order of reading: [Append] and [AppendEvent] write an effect and the River job that carries it inside the caller's
// transaction; [Workers] run the jobs and hand each to the handler of its kind; [Drain] is the handler of events and
// [JetStream] the stream they go to; [Sweeper] gives a new job to an effect whose job was lost; [Replay], [Pause] and
// [Resume] are what an operator can do, each with its audit row; [List] and [Show] are what an operator can see, and [Collector]
// what alarms can; [Events] is what whoever follows a booking reads.
//
// The effect row is the truth, its job only carries it: a job may be lost, rescued, run twice or be retried by hand, and
// whoever works one reads the row first. So at least once is promised, and never exactly once; what an effect does must
// bear repetition (the provider's keys and the event's id see to that).
//
// It owns the tables outbox, outbox_pauses, outbox_workers and operator_actions, and is the only one that touches
// River's tables and client and that speaks NATS. It knows effects and not money: the handlers of charge and cancel are
// functions that are passed in.
package outbox
