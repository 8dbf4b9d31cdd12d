// Package alerts is the place of the Prometheus rules: one alert for each alarm of docs/metrics.md, with a section of its name in
// docs/runbook.md. It holds no code but tests, which bring the real system into the state that each alert is for, and let
// Prometheus' own engine say whether it fires.
package alerts
