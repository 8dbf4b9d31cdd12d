// Package telemetry is what every binary shows of itself: structured logs, metrics and readiness.
package telemetry
