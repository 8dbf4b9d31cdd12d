package payments

import (
	"context"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"holdfast/domain"
	"holdfast/internal/bookings"
	"holdfast/internal/postgres"
	"holdfast/outbox"
)

// NewSendCounter makes the counter of sends to the provider, for [Config]. Each process counts its own: sum over processes.
func NewSendCounter() *prometheus.CounterVec {
	sends := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "holdfast_provider_sends_total",
		Help: "Sends to the payment provider that this process made, by operation and by the class of what came back.",
	}, []string{"operation", "outcome"})
	// Every series is there from the start: a rate over one that appears with its first failure misses that failure.
	for _, op := range []domain.Operation{domain.OpCreate, domain.OpUpdate, domain.OpConfirm, domain.OpCancel, domain.OpRefund} {
		for class := Unknown; class <= KeyMismatch; class++ {
			sends.WithLabelValues(string(op), class.String())
		}
	}
	return sends
}

// The limits of [CardLimits], as metrics name them.
const (
	limitBooking = "booking"
	limitClient  = "client"
)

// NewCardRefusalCounter makes the counter of cards that were refused because too many were tried, for [CardLimits].
func NewCardRefusalCounter() *prometheus.CounterVec {
	refusals := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "holdfast_card_refusals_total",
		Help: "Other cards that this process refused because too many were tried, by the limit that was reached: of one booking, or of one client.",
	}, []string{"limit"})
	for _, limit := range []string{limitBooking, limitClient} {
		refusals.WithLabelValues(limit)
	}
	return refusals
}

const nearHorizon = 0.75 // of the horizon: what is left is a person's time to act

// OverdueCollector shows Prometheus which bookings and sends have not moved on as they should. Every process that has one reads
// the same rows and shows the same numbers: take the maximum over processes, not the sum.
type OverdueCollector struct {
	pool    *pgxpool.Pool
	horizon time.Duration
	logger  *slog.Logger

	near, held, heldAge, ending, endingAge, disputes, success *prometheus.Desc
}

// NewOverdueCollector makes a collector. horizon is the protocol's ([Config]).
func NewOverdueCollector(pool *pgxpool.Pool, horizon time.Duration, logger *slog.Logger) *OverdueCollector {
	desc := func(name, help string) *prometheus.Desc { return prometheus.NewDesc("holdfast_"+name, help, nil, nil) }
	return &OverdueCollector{
		pool: pool, horizon: horizon, logger: logger,
		near: desc("provider_keys_near_horizon",
			"Sends of unknown outcome whose key is older than 75 % of the horizon and whose booking is not settled, in the whole system."),
		held: desc("bookings_held_past_end", "Bookings that are held although their hold is over, in the whole system."),
		heldAge: desc("bookings_held_past_end_oldest_age_seconds",
			"Time since the end of the hold that ended first and is still held, in seconds; 0 if there is none."),
		ending: desc("bookings_ending_overdue", "Bookings that have been ending for more than a minute, in the whole system."),
		endingAge: desc("bookings_ending_oldest_age_seconds",
			"Time since the booking that has been ending for longest began to end, in seconds; 0 if there is none."),
		disputes: prometheus.NewDesc("holdfast_disputes_open",
			"Disputes that are not over, by the provider's status, in the whole system; unknown: a status that is not known here.",
			[]string{"status"}, nil),
		success: desc("payments_scrape_success",
			"Whether bookings and sends could be read for this scrape: 1, or 0 and the gauges of bookings, keys and disputes are missing."),
	}
}

// Describe names the metrics.
func (c *OverdueCollector) Describe(to chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{c.near, c.held, c.heldAge, c.ending, c.endingAge, c.disputes, c.success} {
		to <- desc
	}
}

// Collect reads the rows. A database that is away must not hide the process's other metrics, so it is no error here.
func (c *OverdueCollector) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	gauge := func(desc *prometheus.Desc, v float64) {
		to <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, v)
	}
	var b pgx.Batch
	var overdue bookings.Overdue
	var near aging
	bookings.ReadOverdue(&b, &overdue)
	postgres.One(&b, "count keys near their horizon", func(row aging) { near = row }, agingKeys, time.Duration(nearHorizon*float64(c.horizon)))
	var open []openDisputes
	postgres.All(&b, "count open disputes", &open, openDisputesByStatus)
	if err := postgres.Send(ctx, c.pool, &b); err != nil {
		c.logger.WarnContext(ctx, "bookings and sends could not be read for metrics", "error", err.Error())
		gauge(c.success, 0)
		return
	}
	gauge(c.success, 1)
	gauge(c.near, float64(near.Keys))
	gauge(c.held, float64(overdue.Held))
	gauge(c.heldAge, overdue.OldestHeld)
	gauge(c.ending, float64(overdue.Ending))
	gauge(c.endingAge, overdue.OldestEnding)
	for status, n := range byStatus(open) {
		to <- prometheus.MustNewConstMetric(c.disputes, prometheus.GaugeValue, float64(n), status)
	}
}

type openDisputes struct {
	Status domain.DisputeStatus
	Open   int64
}

const openDisputesByStatus = `
	SELECT status, count(*) AS open FROM disputes WHERE status NOT IN ('won', 'lost', 'warning_closed') GROUP BY status`

// byStatus has every status that an open dispute may have: the provider's words are no set of labels.
func byStatus(open []openDisputes) map[string]int64 {
	counts := map[string]int64{"unknown": 0}
	for _, s := range domain.DisputeStatuses() {
		if !s.Final() {
			counts[string(s)] = 0
		}
	}
	for _, o := range open {
		label := "unknown"
		if o.Status.Known() {
			label = string(o.Status)
		}
		counts[label] += o.Open
	}
	return counts
}

type aging struct{ Keys int64 }

// agingKeys starts from what is unfinished, which is little unless something is wrong, and not from the sends, which are
// all that were ever made.
const agingKeys = `
	SELECT count(*) AS keys
	  FROM payments p JOIN provider_calls c ON c.payment_id = p.id
	 WHERE p.booking_id IN (` + outbox.UnfinishedMoney + `)
	   AND c.outcome = 'unknown' AND c.first_sent_at < statement_timestamp() - $1::interval`
