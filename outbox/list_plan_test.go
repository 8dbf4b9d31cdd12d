package outbox

import (
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/internal/postgres"
	"holdfast/internal/testdb"
)

// TestListOfAHundredThousand (G5): operators look when much is stuck. With 100,000 effects stuck in every way, each first page and
// each following one is chosen by walks along the index, of at most 100 buffers in all, and nothing but the page is sorted. What all of the
// list costs is measured by package operator.
func TestListOfAHundredThousand(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(t, `
		INSERT INTO bookings (id, client_id, resource_id, during, quantity, amount, currency, customer_name, customer_email, status,
		                      hold_expires_at, created_at, updated_at)
		SELECT gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), '[2030-05-01 10:00Z, 2030-05-01 11:00Z)', 1, 2500, 'EUR', 'Ada',
		       'ada@example.com', 'held', now(), now(), now()
		  FROM generate_series(1, 10000)`)
	// Of one in ten the job lives, and in no order that is that of time: what people see is not how the rows lie.
	require.NoError(t, postgres.InTx(t.Context(), b.pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), `SET LOCAL session_replication_role = replica`) // foreign keys are not the matter here
		require.NoError(t, err)
		_, err = tx.Exec(t.Context(), `
		INSERT INTO outbox (id, booking_id, kind, event_type, event_seq, status, last_error, due_at, created_at, job_id)
		SELECT gen_random_uuid(), b.id, kind, CASE kind WHEN 'publish' THEN 'confirmed' END, CASE kind WHEN 'publish' THEN n END,
		       status, 'why', now() + n * interval '1 ms',
		       now() - interval '2 hours' + (n * 7919 % 100003) * interval '10 ms',
		       CASE WHEN n % 10 = 3 THEN enqueue_job(kind, gen_random_uuid(), now()) END
		  FROM (SELECT id, row_number() OVER () AS at FROM bookings) AS b
		  JOIN (SELECT n, (ARRAY['charge', 'cancel', 'refund', 'publish', 'publish'])[1 + n % 5] AS kind,
		               (ARRAY['pending', 'pending', 'in_doubt', 'parked'])[1 + n / 5 % 4] AS status
		          FROM generate_series(1, 100000) AS n) AS stuck ON at = 1 + n / 10 % 10000`)
		return err
	}))
	b.exec(t, `ANALYZE outbox`)
	b.exec(t, `ANALYZE river_job`)
	t.Run("overview", func(t *testing.T) {
		t.Parallel()
		b.overviewWalks(t)
	})
	for name, f := range map[string]Filter{
		"stuck":                 {Stuck: true},
		"unfinished":            {},
		"pending and late":      {Stuck: true, Status: domain.EffectPending},
		"parked":                {Stuck: true, Status: domain.EffectParked},
		"in doubt":              {Status: domain.EffectInDoubt},
		"events":                {Stuck: true, Kind: domain.EffectPublish},
		"refunds":               {Stuck: true, Kind: domain.EffectRefund, Status: domain.EffectPending},
		"old":                   {Stuck: true, OlderThan: 110 * time.Minute},
		"old charges":           {Kind: domain.EffectCharge, OlderThan: 110 * time.Minute, Status: domain.EffectPending},
		"a kind that is not":    {Stuck: true, Kind: domain.EffectRefresh},
		"older than everything": {Stuck: true, OlderThan: 24 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := f
			f.Limit, f.DeadAfter = 50, DeadAfter
			for page := range 3 {
				after, err := parseCursor(f.After)
				require.NoError(t, err)
				got, err := List(t.Context(), b.pool, f)
				require.NoError(t, err)
				buffers, left := 0, f.Limit+1
				for _, query := range pageQueries(f, after) {
					page := query.most(left)
					plan := testdb.Explain(t, b.pool, page.sql, page.args)
					requireWalks(t, plan)
					buffers += plan.Buffers()
					if left -= plan.Rows; left == 0 {
						break
					}
				}
				require.LessOrEqual(t, buffers, 100, "page %d", page)
				if f.After = got.Next; f.After == "" {
					break
				}
			}
		})
	}
}

// overviewWalks: what is counted for people is counted along indexes, up to a number, and never among what is finished.
func (b *testBundle) overviewWalks(t *testing.T) {
	t.Helper()
	var batch pgx.Batch
	var backlog []Backlog
	var ages []AgeBand
	var stuck int64
	ReadBacklog(&batch, &backlog)
	ReadAges(&batch, &ages)
	ReadStuck(&batch, DeadAfter, &stuck)
	for _, query := range batch.QueuedQueries {
		testdb.Explain(t, b.pool, query.SQL, query.Arguments...).Walk(func(p testdb.Plan, _ string) {
			require.False(t, p.Table == "outbox" && p.Type == "Seq Scan", query.SQL)
		})
	}
	require.NoError(t, postgres.Send(t.Context(), b.pool, &batch))
	require.EqualValues(t, MostCounted+1, stuck)
	counted := int64(0)
	for _, is := range backlog {
		require.LessOrEqual(t, is.Count, int64(MostCounted))
		counted += is.Count
	}
	require.Equal(t, int64(90_000), counted, "of 20,000 events that are pending 10,000 are counted")
	require.Len(t, ages, 35)
}

// requireWalks fails the test if anything but an index is walked, or more than a page is sorted.
func requireWalks(t *testing.T, plan testdb.Plan) {
	t.Helper()
	plan.Walk(func(p testdb.Plan, path string) {
		if p.Table != "outbox_workers" { // of a few rows
			require.NotContains(t, p.Type, "Seq Scan", path+" "+p.Table)
		}
		require.NotContains(t, p.Type, "Bitmap", path)
		if strings.HasPrefix(p.Type, "Sort") || strings.HasPrefix(p.Type, "Incremental Sort") {
			require.LessOrEqual(t, p.Rows, 51, path)
			for _, below := range p.Below {
				require.LessOrEqual(t, below.Rows, 51, "%s sorts", path)
			}
		}
	})
}
