package telemetry

import (
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
)

// NewRequestHistogram makes the histogram of how long requests took. A route is its template, never a path: anybody could make as
// many paths as they like.
func NewRequestHistogram() *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "holdfast_http_request_duration_seconds", Help: "How long requests took, in seconds, by route template and status.",
		Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
	}, []string{"route", "status"})
}

// NewPoolCollectors makes what tells of a pool's connections to the database.
func NewPoolCollectors(pool *pgxpool.Pool) []prometheus.Collector {
	gauge := func(name, help string, of func(*pgxpool.Stat) float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "holdfast_db_" + name, Help: help}, func() float64 { return of(pool.Stat()) })
	}
	counter := func(name, help string, of func(*pgxpool.Stat) float64) prometheus.Collector {
		return prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "holdfast_db_" + name, Help: help}, func() float64 { return of(pool.Stat()) })
	}
	return []prometheus.Collector{
		gauge("connections_max", "Most connections that the pool may open.", func(s *pgxpool.Stat) float64 { return float64(s.MaxConns()) }),
		gauge("connections_open", "Connections that are open.", func(s *pgxpool.Stat) float64 { return float64(s.TotalConns()) }),
		gauge("connections_inuse", "Connections that a request holds.", func(s *pgxpool.Stat) float64 { return float64(s.AcquiredConns()) }),
		counter("acquire_waits_total", "Requests that had to wait for a connection.", func(s *pgxpool.Stat) float64 { return float64(s.EmptyAcquireCount()) }),
		counter("acquire_wait_seconds_total", "How long they waited, in seconds, all together.", func(s *pgxpool.Stat) float64 { return s.EmptyAcquireWaitTime().Seconds() }),
	}
}
