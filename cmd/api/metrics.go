package main

import (
	"cmp"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"holdfast/payments"
)

// metrics is what the API measures of itself.
type metrics struct {
	requests     *prometheus.HistogramVec
	cardRefusals *prometheus.CounterVec
}

func newMetrics(registry *prometheus.Registry, pool *pgxpool.Pool) *metrics {
	m := &metrics{
		requests: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "holdfast_http_request_duration_seconds", Help: "How long requests took, in seconds, by route template and status.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
		}, []string{"route", "status"}),
		cardRefusals: payments.NewCardRefusalCounter(),
	}
	registry.MustRegister(m.requests, m.cardRefusals)
	for name, gauge := range map[string]struct {
		help string
		of   func(*pgxpool.Stat) float64
	}{
		"holdfast_db_connections_max":   {"Most connections that the pool may open.", func(s *pgxpool.Stat) float64 { return float64(s.MaxConns()) }},
		"holdfast_db_connections_open":  {"Connections that are open.", func(s *pgxpool.Stat) float64 { return float64(s.TotalConns()) }},
		"holdfast_db_connections_inuse": {"Connections that a request holds.", func(s *pgxpool.Stat) float64 { return float64(s.AcquiredConns()) }},
	} {
		registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: gauge.help},
			func() float64 { return gauge.of(pool.Stat()) }))
	}
	for name, counter := range map[string]struct {
		help string
		of   func(*pgxpool.Stat) float64
	}{
		"holdfast_db_acquire_waits_total":        {"Requests that had to wait for a connection.", func(s *pgxpool.Stat) float64 { return float64(s.EmptyAcquireCount()) }},
		"holdfast_db_acquire_wait_seconds_total": {"How long they waited, in seconds, all together.", func(s *pgxpool.Stat) float64 { return s.EmptyAcquireWaitTime().Seconds() }},
	} {
		registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: counter.help},
			func() float64 { return counter.of(pool.Stat()) }))
	}
	return m
}

// observe counts one request. Paths without a route share one label, or anybody could make as many as they like.
func (m *metrics) observe(route string, status int, took time.Duration) {
	m.requests.WithLabelValues(cmp.Or(route, "none"), strconv.Itoa(status)).Observe(took.Seconds())
}
