package outbox

import (
	"context"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"holdfast/domain"
	"holdfast/internal/postgres"
)

const scrapeTimeout = 2 * time.Second

// NewDeliveryHistogram makes the histogram of how long events took from their commit to the stream's acknowledgement, by
// the database's clock. Each worker tells of the events that it delivered itself: sum over processes.
func NewDeliveryHistogram() prometheus.Histogram {
	return prometheus.NewHistogram(prometheus.HistogramOpts{
		Name:    "holdfast_outbox_event_delivery_seconds",
		Help:    "Time from an event's commit to the stream's acknowledgement as recorded, in seconds, of the events that this process delivered.",
		Buckets: []float64{.01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 7200, 43200},
	})
}

// NewRevivedCounter makes the counter of the jobs that sweeps of this process have made anew: sum over processes.
func NewRevivedCounter() prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{
		Name: "holdfast_outbox_jobs_revived_total",
		Help: "Effects that no live River job carried, and that this process gave a new one.",
	})
}

// Collector shows Prometheus what is unfinished, paused, and not ours. Every process that has one reads the same table and shows the same
// numbers: take the maximum over processes, not the sum.
type Collector struct {
	pool    *pgxpool.Pool
	logger  *slog.Logger
	effects *prometheus.Desc
	oldest  *prometheus.Desc
	paused  *prometheus.Desc
	foreign *prometheus.Desc
	success *prometheus.Desc
}

// NewCollector makes a collector. Each scrape reads each table once.
func NewCollector(pool *pgxpool.Pool, logger *slog.Logger) *Collector {
	labels := []string{"kind", "status"}
	return &Collector{
		pool: pool, logger: logger,
		effects: prometheus.NewDesc("holdfast_outbox_effects",
			"Effects that are not finished, in the whole system, by kind and status (pending, in_doubt, parked).", labels, nil),
		oldest: prometheus.NewDesc("holdfast_outbox_oldest_effect_age_seconds",
			"Age of the oldest effect that is not finished, in seconds, in the whole system, by kind and status; 0 if there is none.", labels, nil),
		paused: prometheus.NewDesc("holdfast_outbox_paused",
			"Whether an operator has paused a kind of effect, in the whole system: 1 or 0.", []string{"kind"}, nil),
		foreign: prometheus.NewDesc("holdfast_outbox_foreign_jobs",
			"River jobs of kinds that this build does not know, in the whole system, by River's state; nobody here carries them out.", []string{"state"}, nil),
		success: prometheus.NewDesc("holdfast_outbox_scrape_success",
			"Whether the outbox could be read for this scrape: 1, or 0 and the other holdfast_outbox metrics are missing.", nil, nil),
	}
}

// Describe names the metrics.
func (c *Collector) Describe(to chan<- *prometheus.Desc) {
	to <- c.effects
	to <- c.oldest
	to <- c.paused
	to <- c.foreign
	to <- c.success
}

// Collect reads the table. A database that is away must not hide the process's other metrics, so it is no error here.
func (c *Collector) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	is, err := readState(ctx, c.pool)
	if err != nil {
		c.logger.WarnContext(ctx, "the outbox could not be read for metrics", "error", err.Error())
		to <- prometheus.MustNewConstMetric(c.success, prometheus.GaugeValue, 0)
		return
	}
	gauge := func(desc *prometheus.Desc, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
	}
	gauge(c.success, 1)
	// Every series is always there: an alarm on one that is missing would stay silent.
	for _, kind := range effectKinds() {
		for _, status := range []domain.EffectStatus{domain.EffectPending, domain.EffectInDoubt, domain.EffectParked} {
			item := is.backlog[backlogKey{kind, status}]
			gauge(c.effects, float64(item.Count), string(kind), string(status))
			gauge(c.oldest, item.Oldest, string(kind), string(status))
		}
	}
	for _, kind := range []domain.EffectKind{domain.EffectCharge, domain.EffectPublish} { // no other can be
		gauge(c.paused, is.paused[kind], string(kind))
	}
	for _, state := range foreignStates() {
		gauge(c.foreign, is.foreign[string(state)], string(state))
	}
}

// state is what a scrape tells.
type state struct {
	backlog map[backlogKey]backlogItem
	paused  map[domain.EffectKind]float64
	foreign map[string]float64 // by River's state
}

func readState(ctx context.Context, q postgres.Querier) (is state, err error) {
	if is.backlog, err = readBacklog(ctx, q); err != nil {
		return is, err
	}
	pauses, err := Pauses(ctx, q)
	if err != nil {
		return is, err
	}
	foreign, err := Foreign(ctx, q)
	if err != nil {
		return is, err
	}
	is.paused, is.foreign = map[domain.EffectKind]float64{}, map[string]float64{}
	for _, p := range pauses {
		is.paused[p.Kind] = 1
	}
	for _, f := range foreign {
		is.foreign[f.State] += float64(f.Count)
	}
	return is, nil
}

type backlogKey struct {
	Kind   domain.EffectKind
	Status domain.EffectStatus
}

type backlogItem struct {
	backlogKey
	Count  int64
	Oldest float64 // its age in seconds
}

// readBacklog counts what is unfinished, which has an index of its own and is little unless something is wrong.
func readBacklog(ctx context.Context, q postgres.Querier) (map[backlogKey]backlogItem, error) {
	rows, err := q.Query(ctx, countBacklog)
	if err != nil {
		return nil, err
	}
	items, err := pgx.CollectRows(rows, pgx.RowToStructByName[backlogItem])
	backlog := make(map[backlogKey]backlogItem, len(items))
	for _, item := range items {
		backlog[item.backlogKey] = item
	}
	return backlog, err
}

const countBacklog = `
	SELECT kind, status, count(*) AS count,
	       greatest(extract(epoch FROM clock_timestamp() - min(created_at)), 0)::float8 AS oldest
	  FROM outbox
	 WHERE status IN ('pending', 'in_doubt', 'parked')
	 GROUP BY kind, status`
