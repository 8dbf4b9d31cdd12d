package payments_test

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/payments"
	"holdfast/payments/stripesim"
)

// gathered is what a scrape shows, by name and label values. It fails the test if a convention is broken.
func (b *bed) gathered(collectors ...prometheus.Collector) map[string]float64 {
	b.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors...)
	families, err := registry.Gather()
	require.NoError(b, err)
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	require.NoError(b, err)
	require.Empty(b, problems)
	got := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			name := []string{strings.TrimPrefix(family.GetName(), "holdfast_")}
			for _, label := range m.GetLabel() {
				name = append(name, label.GetValue())
			}
			got[strings.Join(name, " ")] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
	}
	return got
}

// G5: what has not moved on by itself is seen from outside, with its age, and is seen no more once it has.
// Expected: nothing at first; a key in doubt from 15 h on and not before; a hold past its end; a booking that has been
// ending for more than a minute; nothing again once the reconciler has settled it.
func TestMetrics_TellWhatIsOverdue(t *testing.T) {
	t.Parallel()
	b := setup(t)
	collector := payments.NewOverdueCollector(b.db.Pool, 20*time.Hour, slog.New(slog.DiscardHandler))
	names := []string{
		"provider_keys_near_horizon", "bookings_held_past_end", "bookings_held_past_end_oldest_age_seconds",
		"bookings_ending_overdue", "bookings_ending_oldest_age_seconds",
	}
	requireNow := func(want ...float64) {
		t.Helper()
		got := b.gathered(collector)
		require.InDelta(t, 1, got["payments_scrape_success"], 0)
		for i, name := range names {
			require.Contains(t, got, name)
			require.InDelta(t, want[i], got[name], want[i]/4, name)
		}
	}
	requireNow(0, 0, 0, 0, 0)
	id := b.book("pm_card_visa")
	b.suspend(id)
	b.exec(`UPDATE provider_calls SET first_sent_at = clock_timestamp() - interval '14 hours'`)
	requireNow(0, 0, 0, 0, 0)
	b.exec(`UPDATE provider_calls SET first_sent_at = clock_timestamp() - interval '16 hours'`) // the create's, too, which is known
	requireNow(1, 0, 0, 0, 0)

	b.exec(`UPDATE bookings SET hold_expires_at = clock_timestamp() - interval '1000 seconds' WHERE id = $1`, id)
	requireNow(1, 1, 1000, 0, 0)
	_, err := b.engine().SweepHold(b.ctx)
	require.NoError(t, err)
	require.Zero(t, b.gathered(collector)["bookings_ending_overdue"], "ending for a moment is no alarm")
	b.exec(`UPDATE bookings SET updated_at = clock_timestamp() - interval '1000 seconds' WHERE id = $1`, id)
	requireNow(1, 0, 0, 1, 1000) // the fence has proved nothing yet of the charge either

	b.reconcile(b.engine(), id)
	requireNow(0, 0, 0, 0, 0)
}

// Expected: every send that was made counts once, under its operation and the class of its outcome; every series is there
// from the start.
func TestMetrics_CountEverySend(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.config.Sends = payments.NewSendCounter()
	require.Len(t, b.gathered(b.config.Sends), 40)
	b.sim.AddFault(stripesim.Fault{Operation: "payment_intents.create", Fault: "rate_limit_429"})
	id, declined := b.book("pm_card_visa"), b.book("pm_card_chargeDeclined")
	for _, one := range []domain.BookingID{id, declined} {
		b.work(b.engine(), one, domain.EffectCharge)
		b.reconcile(b.engine(), one) // on a busy machine an answer may have come too late
	}
	got := b.gathered(b.config.Sends)
	require.InDelta(t, 2, got["provider_sends_total create executed"], 0)
	require.GreaterOrEqual(t, got["provider_sends_total create not_executed"], 1.0)
	var total float64
	for _, n := range got {
		total += n
	}
	var sends float64
	b.scan(`SELECT sum(sends) FROM provider_calls`, &sends)
	require.InDelta(t, sends, total, 0)
}

// Expected: a refusal counts under the limit that refused.
func TestMetrics_CountRefusedCards(t *testing.T) {
	t.Parallel()
	b := setup(t)
	refusals := payments.NewCardRefusalCounter()
	id := b.declined()
	_, err := b.changeAnswer(b.cards(payments.CardLimits{PerBooking: 1, Refusals: refusals}), id, "a", "pm_card_visa")
	require.Error(t, err)
	require.Equal(t, map[string]float64{"card_refusals_total booking": 1, "card_refusals_total client": 0}, b.gathered(refusals))
}

// Without a database the process's other metrics are told all the same.
func TestMetrics_WithoutADatabase(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(`DROP TABLE provider_calls`)
	collector := payments.NewOverdueCollector(b.db.Pool, 20*time.Hour, slog.New(slog.DiscardHandler))
	require.Equal(t, map[string]float64{"payments_scrape_success": 0}, b.gathered(collector))
}
