package ledger_test

import (
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"holdfast/internal/ledger"
	"holdfast/internal/postgres"
	"holdfast/internal/testdb"
)

// What an entry adds to a commit that settles a payment, by two commits that differ in it alone:
//
//	go run ./internal/testdb/cmd/withdb -- go test ./internal/ledger -run xxx -bench Settle -count 5
func BenchmarkSettle(b *testing.B) {
	for name, entered := range map[string]bool{"without": false, "with": true} {
		b.Run(name, func(b *testing.B) {
			db := testdb.New(b)
			ids := make([]uuid.UUID, b.N)
			_, err := db.Pool.Exec(b.Context(), `
				INSERT INTO bookings (id, client_id, resource_id, during, quantity, amount, currency, customer_name, customer_email, status, hold_expires_at,
				                      created_at, updated_at)
				SELECT ('00000001-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, gen_random_uuid(), gen_random_uuid(),
				       '[2030-01-01 10:00Z,2030-01-01 11:00Z)', 1, 2500, 'EUR', 'Ada', 'ada@example.org', 'confirmed', now(), now(), now()
				  FROM generate_series(0, $1 - 1) n`, b.N)
			require.NoError(b, err)
			_, err = db.Pool.Exec(b.Context(), `
				INSERT INTO payments (id, booking_id, amount, currency, payment_method, status, provider_intent_id, created_at, updated_at)
				SELECT id, id, 2500, 'EUR', 'pm', 'pending', id::text, now(), now() FROM bookings`)
			require.NoError(b, err)
			rows, err := db.Pool.Query(b.Context(), `SELECT id FROM payments`)
			require.NoError(b, err)
			ids, err = pgx.AppendRows(ids[:0], rows, pgx.RowTo[uuid.UUID])
			require.NoError(b, err)
			b.ResetTimer()
			for _, id := range ids {
				err := postgres.InTx(b.Context(), db.Pool, func(tx pgx.Tx) error {
					var batch pgx.Batch
					postgres.Exec(&batch, "lock", `SELECT FROM bookings WHERE id = $1 FOR UPDATE`, id)
					postgres.Exec(&batch, "settle", `UPDATE payments SET status = 'succeeded', amount_received = 2500, updated_at = clock_timestamp() WHERE id = $1`, id)
					postgres.Exec(&batch, "confirm", `UPDATE bookings SET version = version + 1, updated_at = clock_timestamp() WHERE id = $1`, id)
					if entered {
						ledger.Bring(&batch, id)
					}
					return postgres.Send(b.Context(), tx, &batch)
				})
				require.NoError(b, err)
			}
		})
	}
}
