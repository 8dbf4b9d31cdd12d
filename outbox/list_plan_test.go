package outbox

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/internal/postgres"
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
					plan := b.plan(t, query.most(left))
					plan.requireWalks(t)
					buffers += plan.buffers()
					if left -= plan.Plan.Rows; left == 0 {
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
		plan := b.explain(t, query.SQL, query.Arguments...)
		var walk func(n planNode)
		walk = func(n planNode) {
			require.False(t, n.Table == "outbox" && n.Type == "Seq Scan", query.SQL)
			for _, below := range n.Plans {
				walk(below)
			}
		}
		walk(plan.Plan)
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

// explained is what PostgreSQL says of a statement that it has run.
type explained struct {
	Plan planNode `json:"Plan"`
}

type planNode struct {
	Type  string     `json:"Node Type"`
	Table string     `json:"Relation Name"`
	Rows  int        `json:"Actual Rows"`
	Hit   int        `json:"Shared Hit Blocks"`
	Read  int        `json:"Shared Read Blocks"`
	Plans []planNode `json:"Plans"`
}

func (b *testBundle) plan(t *testing.T, p pageQuery) explained {
	t.Helper()
	return b.explain(t, p.sql, p.args)
}

func (b *testBundle) explain(t *testing.T, sql string, args ...any) explained {
	t.Helper()
	var text []byte
	require.NoError(t, b.pool.QueryRow(t.Context(), `EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) `+sql, args...).Scan(&text))
	var plans []explained
	require.NoError(t, json.Unmarshal(text, &plans), string(text))
	return plans[0]
}

func (e explained) buffers() int { return e.Plan.Hit + e.Plan.Read }

// requireWalks fails the test if anything but an index is walked, or more than a page is sorted.
func (e explained) requireWalks(t *testing.T) {
	t.Helper()
	var walk func(n planNode, within string)
	walk = func(n planNode, within string) {
		path := within + " > " + n.Type
		if n.Table != "outbox_workers" { // of a few rows
			require.NotContains(t, n.Type, "Seq Scan", path+" "+n.Table)
		}
		require.NotContains(t, n.Type, "Bitmap", path)
		if strings.HasPrefix(n.Type, "Sort") || strings.HasPrefix(n.Type, "Incremental Sort") {
			require.LessOrEqual(t, n.Rows, 51, path)
			for _, below := range n.Plans {
				require.LessOrEqual(t, below.Rows, 51, "%s sorts", path)
			}
		}
		for _, below := range n.Plans {
			walk(below, path)
		}
	}
	walk(e.Plan, "")
}
