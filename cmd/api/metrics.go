package main

import (
	"cmp"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"holdfast/internal/telemetry"
	"holdfast/payments"
)

// metrics is what the API measures of itself.
type metrics struct {
	requests     *prometheus.HistogramVec
	cardRefusals *prometheus.CounterVec
}

func newMetrics(registry *prometheus.Registry, pool *pgxpool.Pool) *metrics {
	m := &metrics{requests: telemetry.NewRequestHistogram(), cardRefusals: payments.NewCardRefusalCounter()}
	registry.MustRegister(m.requests, m.cardRefusals)
	registry.MustRegister(telemetry.NewPoolCollectors(pool)...)
	return m
}

// observe counts one request. Paths without a route share one label, or anybody could make as many as they like.
func (m *metrics) observe(route string, status int, took time.Duration) {
	m.requests.WithLabelValues(cmp.Or(route, "none"), strconv.Itoa(status)).Observe(took.Seconds())
}
