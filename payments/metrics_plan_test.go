package payments

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"holdfast/internal/bookings"
	"holdfast/internal/testdb"
)

// A scrape must cost the same after a year as on the first day. Expected: among thousands of bookings that are over, the
// questions of the collector are answered from indexes; no table that grows for ever is read from end to end.
func TestMetrics_ReadNoBigTableWhole(t *testing.T) {
	t.Parallel()
	db := testdb.New(t)
	_, err := db.Pool.Exec(t.Context(), `
		INSERT INTO bookings (id, client_id, resource_id, during, quantity, amount, currency, customer_name, customer_email, status,
		                      hold_expires_at, created_at, updated_at)
		SELECT gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), '[2030-01-01,2030-01-02)', 1, 1, 'EUR', 'Ada', 'ada@example.org',
		       CASE WHEN n = 1 THEN 'held' ELSE 'confirmed' END, now(), now(), now()
		  FROM generate_series(1, 3000) AS n;
		INSERT INTO payments (id, booking_id, amount, currency, payment_method, status, created_at, updated_at)
		SELECT gen_random_uuid(), id, 1, 'EUR', 'pm_card_visa', 'succeeded', now(), now() FROM bookings;
		INSERT INTO disputes (id, payment_id, amount, currency, reason, status, withdrawn, opened_at, created_at, updated_at)
		SELECT id, id, 1, 'EUR', 'fraudulent', 'lost', true, now(), now(), now() FROM payments;
		INSERT INTO provider_calls (payment_id, operation, ordinal, key, params, first_sent_at, last_sent_at)
		SELECT id, operation, 1, id || operation, '{}', now(), now() FROM payments, unnest(ARRAY['create', 'confirm']) AS operation;
		INSERT INTO outbox (id, booking_id, kind, status, due_at, created_at, finished_at)
		SELECT gen_random_uuid(), id, 'charge', CASE status WHEN 'held' THEN 'pending' ELSE 'done' END, now(), now(),
		       CASE status WHEN 'held' THEN NULL ELSE now() END
		  FROM bookings`)
	require.NoError(t, err)
	_, err = db.Pool.Exec(t.Context(), `ANALYZE`)
	require.NoError(t, err)
	var questions pgx.Batch
	bookings.ReadOverdue(&questions, &bookings.Overdue{})
	questions.Queue(agingKeys, time.Hour)
	questions.Queue(openDisputesByStatus)
	for _, q := range questions.QueuedQueries {
		db.RequireIndexed(t, q.SQL, q.Arguments...)
	}
}
