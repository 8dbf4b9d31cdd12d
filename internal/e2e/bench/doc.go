// Command bench measures what accepting a booking costs, as ratios, and how soon its charge is picked up.
//
// The promise: it starts all that it measures (a PostgreSQL with fsync on, the built api and worker, JetStream, the
// simulated provider) and leaves nothing running. Sides that are compared are measured in turns within one round, in a
// different order each round, with a loop beside them that shows how fast the machine was. Every figure is the median
// over the rounds, with its range. What was claimed to be booked is counted in the rows. A deadlock, a refusal or a
// missing row makes it exit 1.
//
// The order of reading: main.go is the run, bed.go what it runs on, sides.go what is measured, pickup.go the latency,
// report.go and plot.go what comes out. docs/performance.md says what the figures mean.
package main
