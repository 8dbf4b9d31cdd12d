package finance

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

// Collector shows Prometheus what does not match, and how long ago the books were compared. Every process that has one shows the same
// numbers: take the maximum over processes, not the sum.
type Collector struct {
	pool     *pgxpool.Pool
	logger   *slog.Logger
	open     *prometheus.Desc
	compared *prometheus.Desc
	success  *prometheus.Desc
}

// NewCollector makes a collector. Each scrape reads what is open, by its index.
func NewCollector(pool *pgxpool.Pool, logger *slog.Logger) *Collector {
	return &Collector{
		pool: pool, logger: logger,
		open: prometheus.NewDesc("holdfast_finance_exceptions", "Exceptions that are open, in the whole system.", []string{"kind"}, nil),
		compared: prometheus.NewDesc("holdfast_finance_compared_age_seconds",
			"How long ago the time ended up to which our books were compared with the provider's; before the first comparison, how old our books are. Missing while they are empty.", nil, nil),
		success: prometheus.NewDesc("holdfast_finance_scrape_success",
			"Whether the exceptions could be read for this scrape: 1, or 0 and the other metrics of this kind are missing.", nil, nil),
	}
}

// Describe names the metrics.
func (c *Collector) Describe(to chan<- *prometheus.Desc) {
	to <- c.open
	to <- c.compared
	to <- c.success
}

// Collect reads the tables. A database that is away must not hide the process's other metrics, so it is no error here.
func (c *Collector) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	open, age, err := readOpen(ctx, c.pool)
	if err != nil {
		c.logger.WarnContext(ctx, "the exceptions could not be read for metrics", "error", err.Error())
		to <- prometheus.MustNewConstMetric(c.success, prometheus.GaugeValue, 0)
		return
	}
	to <- prometheus.MustNewConstMetric(c.success, prometheus.GaugeValue, 1)
	for kind, n := range open {
		to <- prometheus.MustNewConstMetric(c.open, prometheus.GaugeValue, float64(n), kind)
	}
	if age != nil {
		to <- prometheus.MustNewConstMetric(c.compared, prometheus.GaugeValue, *age)
	}
}

// readOpen counts what is open of each kind, and reads how many seconds ago the compared time ended.
func readOpen(ctx context.Context, pool *pgxpool.Pool) (open map[string]int64, age *float64, err error) {
	open = map[string]int64{}
	for _, kind := range Kinds() {
		open[kind.Name] = 0
	}
	var counts []struct {
		Kind string
		N    int64
	}
	b := &pgx.Batch{}
	postgres.All(b, "count what is open", &counts, `SELECT kind, count(*) AS n FROM reconciliation_items WHERE status = 'open' GROUP BY kind`)
	postgres.One(b, "find the newest comparison", func(c struct{ Age *float64 }) { age = c.Age }, `
		SELECT extract(epoch FROM clock_timestamp() - coalesce(
		       (SELECT max(to_at) FROM reconciliation_runs WHERE kind = 'match' AND status = 'complete'),
		       (SELECT min(occurred_at) FROM ledger_entries)))::float8 AS age`)
	if err := postgres.Send(ctx, pool, b); err != nil {
		return nil, nil, err
	}
	for _, c := range counts {
		open[c.Kind] = c.N
	}
	return open, age, nil
}
