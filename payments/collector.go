package payments

import (
	"context"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"holdfast/internal/postgres"
)

const scrapeTimeout = 2 * time.Second

// Collector shows Prometheus which of the provider's events are unfinished, and how far its list has been read. Every
// process that has one shows the same numbers: take the maximum over processes, not the sum.
type Collector struct {
	pool    *pgxpool.Pool
	logger  *slog.Logger
	events  *prometheus.Desc
	oldest  *prometheus.Desc
	swept   *prometheus.Desc
	success *prometheus.Desc
}

// NewCollector makes a collector. Each scrape reads the tables once.
func NewCollector(pool *pgxpool.Pool, logger *slog.Logger) *Collector {
	labels := []string{"status"}
	return &Collector{
		pool: pool, logger: logger,
		events: prometheus.NewDesc("holdfast_provider_events_unfinished",
			"Events of the provider that wait to be acted on (pending) or for a person (parked), in the whole system.", labels, nil),
		oldest: prometheus.NewDesc("holdfast_provider_events_oldest_age_seconds",
			"Since when the oldest of them has been here; 0 if there is none.", labels, nil),
		swept: prometheus.NewDesc("holdfast_provider_events_sweep_age_seconds",
			"How long ago the part of the provider's list of events ended that has been read whole; missing before the first reconciler.", nil, nil),
		success: prometheus.NewDesc("holdfast_provider_events_scrape_success",
			"Whether the events could be read for this scrape: 1, or 0 and the other metrics of this kind are missing.", nil, nil),
	}
}

// Describe names the metrics.
func (c *Collector) Describe(to chan<- *prometheus.Desc) {
	to <- c.events
	to <- c.oldest
	to <- c.swept
	to <- c.success
}

// Collect reads the tables. A database that is away must not hide the process's other metrics, so it is no error here.
func (c *Collector) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	b, err := readEventBacklog(ctx, c.pool)
	if err != nil {
		c.logger.WarnContext(ctx, "the provider's events could not be read for metrics", "error", err.Error())
		to <- prometheus.MustNewConstMetric(c.success, prometheus.GaugeValue, 0)
		return
	}
	to <- prometheus.MustNewConstMetric(c.success, prometheus.GaugeValue, 1)
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	gauge(c.events, float64(b.Pending), receiptPending)
	gauge(c.events, float64(b.Parked), receiptParked)
	gauge(c.oldest, b.PendingAge, receiptPending)
	gauge(c.oldest, b.ParkedAge, receiptParked)
	if b.SweepAge != nil {
		gauge(c.swept, *b.SweepAge)
	}
}

type eventBacklog struct {
	Pending, Parked       int64
	PendingAge, ParkedAge float64 // seconds
	SweepAge              *float64
}

// readEventBacklog reads what is unfinished, by its own indexes.
func readEventBacklog(ctx context.Context, q postgres.Querier) (eventBacklog, error) {
	rows, err := q.Query(ctx, `
		SELECT pending.n AS pending, parked.n AS parked, pending.age AS pending_age, parked.age AS parked_age,
		       (SELECT extract(epoch FROM clock_timestamp() - swept_to)::float8 FROM provider_events_sweep) AS sweep_age
		  FROM (SELECT count(*) AS n, coalesce(extract(epoch FROM clock_timestamp() - min(received_at)), 0)::float8 AS age
		          FROM provider_events WHERE status = 'pending') AS pending,
		       (SELECT count(*) AS n, coalesce(extract(epoch FROM clock_timestamp() - min(received_at)), 0)::float8 AS age
		          FROM provider_events WHERE status = 'parked') AS parked`)
	if err != nil {
		return eventBacklog{}, err
	}
	return pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[eventBacklog])
}
