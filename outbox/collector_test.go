package outbox

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/internal/telemetry"
	"holdfast/internal/testdb"
)

// TestMetricsTellTheBacklog (G5): what alarms look at, by kind and status, with zeros where there is nothing.
func TestMetricsTellTheBacklog(t *testing.T) {
	t.Parallel()
	b := setup(t)
	made := b.book(t)
	b.book(t)
	b.exec(t, `UPDATE outbox SET status = 'in_doubt', created_at = now() - interval '2 days' WHERE id = $1`, made.charge)
	b.exec(t, `UPDATE outbox SET status = 'done', finished_at = now(), stream = 'B', stream_sequence = 1 WHERE id = $1`, made.held)
	registry := telemetry.NewRegistry()
	registry.MustRegister(NewCollector(b.pool, b.logger))
	families, err := registry.Gather()
	require.NoError(t, err)
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	require.NoError(t, err)
	require.Empty(t, problems)
	got := gather(t, registry)
	require.InDelta(t, 1, got["holdfast_outbox_effects charge in_doubt"], 0)
	require.InDelta(t, 1, got["holdfast_outbox_effects charge pending"], 0)
	require.InDelta(t, 1, got["holdfast_outbox_effects publish pending"], 0)
	require.InDelta(t, 2*24*3600, got["holdfast_outbox_oldest_effect_age_seconds charge in_doubt"], 600)
	require.InDelta(t, 1, got["holdfast_outbox_scrape_success"], 0)
	for _, none := range []string{"holdfast_outbox_effects refund parked", "holdfast_outbox_oldest_effect_age_seconds cancel pending"} {
		require.Contains(t, got, none)
		require.Zero(t, got[none])
	}
}

// TestMetricsWithoutADatabase: the process's other metrics are told all the same.
func TestMetricsWithoutADatabase(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(t, `DROP TABLE outbox CASCADE`)
	registry := telemetry.NewRegistry()
	registry.MustRegister(NewCollector(b.pool, b.logger))
	got := gather(t, registry)
	require.Contains(t, got, "holdfast_outbox_scrape_success")
	require.Zero(t, got["holdfast_outbox_scrape_success"])
	require.NotContains(t, got, "holdfast_outbox_effects charge pending")
	require.Contains(t, got, "go_goroutines")
}

// A scrape must cost the same after a year as on the first day: the finished rows are not read.
func TestMetricsReadNoFinishedRows(t *testing.T) {
	t.Parallel()
	db := testdb.New(t)
	b := &testBundle{pool: db.Pool, logger: slog.New(slog.DiscardHandler)}
	made := b.book(t)
	b.exec(t, `INSERT INTO outbox (id, booking_id, kind, status, due_at, created_at, finished_at)
		SELECT gen_random_uuid(), $1, 'charge', 'done', now(), now(), now() FROM generate_series(1, 3000)`, made.booking)
	b.exec(t, `ANALYZE outbox`)
	db.RequireIndexed(t, countBacklog)
}

// Expected: each event that the stream has acknowledged counts once, with its age when that was recorded.
func TestMetricsTellHowLongEventsTook(t *testing.T) {
	t.Parallel()
	b := setup(t)
	made := b.book(t)
	began := time.Now()
	b.exec(t, `UPDATE outbox SET created_at = now() - interval '100 seconds' WHERE id = $1`, made.held)
	delivery := NewDeliveryHistogram()
	drain := NewDrain(b.pool, acknowledging{}, DrainConfig{Delivery: delivery}, b.logger)
	for range 2 {
		_, err := drain.Work(t.Context(), Job{Effect: made.held, Kind: domain.EffectPublish})
		require.NoError(t, err)
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(delivery)
	families, err := registry.Gather()
	require.NoError(t, err)
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	require.NoError(t, err)
	require.Empty(t, problems)
	h := families[0].GetMetric()[0].GetHistogram()
	require.EqualValues(t, 1, h.GetSampleCount())
	took := time.Since(began).Seconds()
	require.InDelta(t, 100+took/2, h.GetSampleSum(), took/2+1)
}

// acknowledging is a stream that takes everything.
type acknowledging struct{}

func (acknowledging) Publish(context.Context, Message) (Ack, error) {
	return Ack{Stream: "BOOKINGS", Sequence: 1}, nil
}

// gather reads gauges by name and label values.
func gather(t *testing.T, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	require.NoError(t, err)
	got := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			name := []string{family.GetName()}
			for _, label := range m.GetLabel() {
				name = append(name, label.GetValue())
			}
			got[strings.Join(name, " ")] = m.GetGauge().GetValue()
		}
	}
	return got
}
