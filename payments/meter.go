package payments

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Meter counts what this process does about the provider's events. It is a prometheus.Collector; sum it over processes.
type Meter struct {
	deliveries  *prometheus.CounterVec
	deliveryLag prometheus.Histogram
	events      *prometheus.CounterVec
	outcomes    *prometheus.CounterVec
	settleLag   prometheus.Histogram
}

// NewMeter makes a meter that has counted nothing.
func NewMeter() *Meter {
	seconds := []float64{.05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 3600, 6 * 3600, 24 * 3600, 72 * 3600}
	m := &Meter{
		deliveries: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "holdfast_webhook_deliveries_total",
			Help: "Deliveries to the webhook endpoint by result: stored, repeated, not_stored (the provider will try again), bad_signature, bad_time, unreadable.",
		}, []string{"result"}),
		deliveryLag: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "holdfast_webhook_delivery_lag_seconds", Help: "From an event's creation, by the provider's clock, to its delivery, by ours.", Buckets: seconds,
		}),
		events: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "holdfast_provider_events_stored_total",
			Help: "Events that were new here, by type and by who brought them: webhook, or sweep, which means that no webhook did.",
		}, []string{"type", "via"}),
		outcomes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "holdfast_provider_events_handled_total",
			Help: "Turns of stored events by result: settled, ignored, foreign, parked; pending is one that has to wait.",
		}, []string{"type", "result"}),
		settleLag: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "holdfast_provider_event_settle_lag_seconds", Help: "From the receipt of an event to its end, whichever it was.", Buckets: seconds,
		}),
	}
	for _, result := range []string{"stored", "repeated", "not_stored", "bad_signature", "bad_time", "unreadable"} {
		m.deliveries.WithLabelValues(result) // an alarm on a series that is missing would stay silent
	}
	return m
}

func (m *Meter) orNew() *Meter {
	if m == nil {
		return NewMeter()
	}
	return m
}

func (m *Meter) parts() []prometheus.Collector {
	return []prometheus.Collector{m.deliveries, m.deliveryLag, m.events, m.outcomes, m.settleLag}
}

// Describe names the metrics.
func (m *Meter) Describe(to chan<- *prometheus.Desc) {
	for _, part := range m.parts() {
		part.Describe(to)
	}
}

// Collect tells the counts.
func (m *Meter) Collect(to chan<- prometheus.Metric) {
	for _, part := range m.parts() {
		part.Collect(to)
	}
}

func (m *Meter) delivered(result string) { m.deliveries.WithLabelValues(result).Inc() }

func (m *Meter) lag(d time.Duration) { m.deliveryLag.Observe(max(d.Seconds(), 0)) }

// stored counts a new receipt. One that nobody acts on is at its end.
func (m *Meter) stored(e Event, via string) {
	m.events.WithLabelValues(e.Type, via).Inc()
	if !e.heeded() {
		m.outcomes.WithLabelValues(e.Type, receiptIgnored).Inc()
	}
}

func (m *Meter) finished(c claimed, result string) {
	m.outcomes.WithLabelValues(c.Type, result).Inc()
	if result != receiptPending {
		m.settleLag.Observe(c.Waited.Seconds())
	}
}
