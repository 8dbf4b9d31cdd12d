package operator_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/internal/operator"
	"holdfast/internal/postgres"
	"holdfast/internal/testdb"
	"holdfast/outbox"
)

// TestList_OfAHundredThousand (G5): operators look when much is stuck. Of 100,000 effects that are stuck in every way, each page, with all
// that it says of its rows (jobs, earlier events, money), costs at most 200 buffers, over all statements that are run for it. But where all
// of its rows are pending, each of them is looked up by its keys, in the job's index, the payment's and those of its booking's events:
// that is more, and as much for each row, however many there are.
func TestList_OfAHundredThousand(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.stuck(100_000)
	for name, f := range map[string]outbox.Filter{
		"stuck":            {Stuck: true},
		"unfinished":       {},
		"pending and late": {Stuck: true, Status: domain.EffectPending},
		"parked":           {Stuck: true, Status: domain.EffectParked},
		"in doubt":         {Status: domain.EffectInDoubt},
		"pending charges":  {Stuck: true, Kind: domain.EffectCharge, Status: domain.EffectPending},
		"pending cancels":  {Kind: domain.EffectCancel, Status: domain.EffectPending},
		"pending refunds":  {Stuck: true, Kind: domain.EffectRefund, Status: domain.EffectPending},
		"pending events":   {Stuck: true, Kind: domain.EffectPublish, Status: domain.EffectPending},
		"events":           {Stuck: true, Kind: domain.EffectPublish},
		"old":              {Stuck: true, OlderThan: 110 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all := &recorder{}
			config, err := pgxpool.ParseConfig(b.db.URL)
			require.NoError(t, err)
			config.ConnConfig.Tracer = all
			pool, err := pgxpool.NewWithConfig(t.Context(), config)
			require.NoError(t, err)
			t.Cleanup(pool.Close)
			desk := b.deskOn(pool, operator.Config{})
			for size, pages := range map[int]int{50: 3, 100: 1} { // a page of the console's, and one of the command line's
				f := f
				f.Limit = size
				for page := range pages {
					all.forget()
					got, err := desk.List(t.Context(), f)
					require.NoError(t, err)
					require.Len(t, got.Rows, size)
					sum := 0
					for _, s := range all.said() {
						sum += b.buffers(t, s)
					}
					most := 200
					if f.Status == domain.EffectPending {
						most = 12 * size
					}
					require.LessOrEqual(t, sum, most, "page %d of %d", page, size)
					t.Logf("page %d of %d: %d buffers", page, size, sum)
					f.After = got.Next
				}
			}
		})
	}
}

// stuck makes n effects that are stuck in every way, five of each booking: its two events, charge, cancel and refund. Every one that
// could have a live job has one. Ids are made of time, as ours are, and so the rows lie; but one in ten has been moved by an update.
func (b *bed) stuck(n int) {
	b.Helper()
	require.NoError(b, postgres.InTx(b.Context(), b.db.Pool, func(tx pgx.Tx) error {
		for _, sql := range []string{
			`SET LOCAL session_replication_role = replica`, // foreign keys are not the matter here
			`SELECT setseed(0.5)`,
			`CREATE FUNCTION pg_temp.id_of(t timestamptz) RETURNS uuid LANGUAGE sql VOLATILE AS $$
				SELECT (lpad(to_hex((extract(epoch FROM t) * 1000)::bigint), 12, '0') || '7' || substr(replace(gen_random_uuid()::text, '-', ''), 14))::uuid $$`,
			fmt.Sprintf(`CREATE TEMP TABLE made ON COMMIT DROP AS
				SELECT n, at, pg_temp.id_of(at) AS id FROM generate_series(1, %d) AS n, LATERAL (SELECT now() - interval '2 hours' + n * interval '100 ms' AS at) AS t`, n/5),
			`CREATE TEMP TABLE effects ON COMMIT DROP AS
				SELECT row_number() OVER (ORDER BY at + after) AS job, pg_temp.id_of(at + after) AS id, made.id AS booking_id, kind, event_type, seq, at + after AS at,
				       (ARRAY['pending', 'pending', 'in_doubt', 'parked'])[1 + floor(random() * 4)] AS status
				  FROM made, (VALUES ('publish', 'held', 1, interval '0'), ('charge', NULL, NULL, '1 ms'), ('publish', 'confirmed', 2, '2 s'),
				                     ('cancel', NULL, NULL, '10 s'), ('refund', NULL, NULL, '20 s')) AS each (kind, event_type, seq, after)`,
			`INSERT INTO payments (id, booking_id, amount, currency, payment_method, created_at, updated_at)
				SELECT pg_temp.id_of(at), id, 2500, 'EUR', 'pm_card_visa', at, at FROM made ORDER BY at + CASE WHEN random() < 0.1 THEN random() * interval '1 hour' ELSE '0' END`,
			`INSERT INTO refunds (id, payment_id, effect_id, amount, currency, reason, created_at, updated_at)
				SELECT id, booking_id, id, 2500, 'EUR', 'late_success', at, at FROM effects WHERE kind = 'refund' ORDER BY at + CASE WHEN random() < 0.1 THEN random() * interval '1 hour' ELSE '0' END`,
			`INSERT INTO river_job (id, args, kind, max_attempts, queue, state, scheduled_at)
				SELECT job, jsonb_build_object('effect_id', id), kind, 25, kind, 'available', now() FROM effects WHERE seq IS DISTINCT FROM 1 ORDER BY at + CASE WHEN random() < 0.1 THEN random() * interval '1 hour' ELSE '0' END`,
			`INSERT INTO outbox (id, booking_id, kind, event_type, event_seq, status, last_error, due_at, created_at, job_id)
				SELECT id, booking_id, kind, event_type, seq, status, 'why', now(), at, CASE WHEN seq IS DISTINCT FROM 1 THEN job END FROM effects ORDER BY at + CASE WHEN random() < 0.1 THEN random() * interval '1 hour' ELSE '0' END`,
		} {
			if _, err := tx.Exec(b.Context(), sql); err != nil {
				return err
			}
		}
		return nil
	}))
	for _, table := range []string{"outbox", "river_job", "payments", "refunds"} {
		b.exec(`ANALYZE ` + table)
	}
}

// statement is one that was run, with its arguments.
type statement struct {
	sql  string
	args []any
}

// recorder notes every statement that its pool runs.
type recorder struct {
	mu  sync.Mutex
	all []statement
}

// TraceQueryStart notes one.
func (r *recorder) TraceQueryStart(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, statement{q.SQL, q.Args})
	return ctx
}

// TraceQueryEnd has nothing to note.
func (*recorder) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (r *recorder) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = nil
}

func (r *recorder) said() []statement {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.all
}

// buffers runs a statement once more and tells how many buffers it has read. It fails the test if that was not by indexes.
func (b *bed) buffers(t *testing.T, s statement) int {
	t.Helper()
	plan := testdb.Explain(t, b.db.Pool, s.sql, s.args...)
	plan.Walk(func(p testdb.Plan, _ string) {
		if p.Type == "Seq Scan" {
			require.Contains(t, []string{"outbox_pauses", "outbox_workers"}, p.Table, "these have a few rows; %s", s.sql)
		}
	})
	return plan.Buffers()
}
