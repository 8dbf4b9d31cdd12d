package outbox

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivertype"
	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/internal/postgres"
	"holdfast/internal/testdb"
)

// TestEnqueueJobWritesWhatRiverWould guards G6 and G7's ground: our SQL inserts River's rows, so a River upgrade that
// adds a column, a default or a state must turn this red and not lose jobs in silence.
func TestEnqueueJobWritesWhatRiverWould(t *testing.T) {
	t.Parallel()
	effect := domain.NewID[domain.EffectID]()
	for _, args := range []river.JobArgs{
		domain.ChargeArgs{EffectID: effect}, domain.CancelArgs{EffectID: effect}, domain.PublishArgs{EffectID: effect},
	} {
		for name, delay := range map[string]time.Duration{"now": 0, "later": time.Hour} {
			t.Run(args.Kind()+" "+name, func(t *testing.T) {
				t.Parallel()
				tx := testdb.Tx(t)
				client, err := river.NewClient(riverpgxv5.New(nil), &river.Config{})
				require.NoError(t, err)
				opts := &river.InsertOpts{Queue: args.Kind()}
				var at time.Time
				require.NoError(t, tx.QueryRow(t.Context(), `SELECT now() + $1::interval`, delay).Scan(&at))
				if delay > 0 {
					opts.ScheduledAt = at
				}
				theirs, err := client.InsertTx(t.Context(), tx, args, opts)
				require.NoError(t, err)
				var ours int64
				require.NoError(t, tx.QueryRow(t.Context(), `SELECT enqueue_job($1, $2, $3)`, args.Kind(), effect, at).Scan(&ours))
				requireEqualJobs(t, tx, theirs.Job.ID, ours)
			})
		}
	}
}

// TestCompletionIsRivers: a job that a settlement completes reads as if River had completed it.
func TestCompletionIsRivers(t *testing.T) {
	t.Parallel()
	b := setup(t)
	made := b.book(t)
	b.exec(t, `SELECT enqueue_job('charge', $1, now())`, made.charge) // a second one for the same effect
	done := make(chan int64, 2)
	b.workers(t, WorkersConfig{MaxWorkers: 1}, map[domain.EffectKind]Handler{
		domain.EffectCharge: func(ctx context.Context, job Job) (Verdict, error) {
			return Verdict{}, postgres.InTx(ctx, b.pool, func(tx pgx.Tx) error {
				defer func() { done <- job.ID }()
				if len(done) > 0 {
					return write(ctx, tx, func(q *pgx.Batch) error { job.Complete(q); return nil })
				}
				row := &rivertype.JobRow{ID: job.ID, State: rivertype.JobStateRunning}
				_, err := river.JobCompleteTx[*riverpgxv5.Driver](ctx, tx, &river.Job[domain.ChargeArgs]{JobRow: row})
				return err
			})
		},
	})
	b.eventually(t, 2, `SELECT count(*) FROM river_job WHERE state = 'completed'`)
	require.NoError(t, postgres.InTx(t.Context(), b.pool, func(tx pgx.Tx) error {
		requireEqualJobs(t, tx, <-done, <-done)
		return nil
	}))
}

// TestAcceptBookingsJobIsOneOfRivers is the same for the row that the accepting function writes.
func TestAcceptBookingsJobIsOneOfRivers(t *testing.T) {
	t.Parallel()
	tx := testdb.Tx(t)
	made := book(t, tx)
	client, err := river.NewClient(riverpgxv5.New(nil), &river.Config{})
	require.NoError(t, err)
	theirs, err := client.InsertTx(t.Context(), tx, domain.ChargeArgs{EffectID: made.charge}, &river.InsertOpts{Queue: "charge"})
	require.NoError(t, err)
	e, err := Load(t.Context(), tx, made.charge)
	require.NoError(t, err)
	require.NotNil(t, e.JobID)
	requireEqualJobs(t, tx, theirs.Job.ID, *e.JobID)
}

// TestGoldenJobArgumentsKeepTheirShape: rows written by an older build must still be understood, and the other way round.
func TestGoldenJobArgumentsKeepTheirShape(t *testing.T) {
	t.Parallel()
	id, err := domain.ParseID[domain.EffectID]("0190b7a0-0000-7000-8000-000000000001")
	require.NoError(t, err)
	for _, args := range []river.JobArgs{
		domain.ChargeArgs{EffectID: id}, domain.CancelArgs{EffectID: id}, domain.RefundArgs{EffectID: id}, domain.PublishArgs{EffectID: id},
	} {
		text, err := json.Marshal(args)
		require.NoError(t, err)
		golden(t, filepath.Join("testdata", "jobs", args.Kind()+".json"), text)
	}
}

// requireEqualJobs compares column by column. The two times may differ by a moment: River takes them from its process,
// we take them from the transaction.
func requireEqualJobs(t *testing.T, tx pgx.Tx, theirs, ours int64) {
	t.Helper()
	want, got := jobRow(t, tx, theirs), jobRow(t, tx, ours)
	for _, column := range []string{"created_at", "scheduled_at", "attempted_at", "finalized_at"} {
		if want[column] == nil || got[column] == nil {
			continue // compared below
		}
		require.WithinDuration(t, instant(t, want[column]), instant(t, got[column]), 10*time.Second, column)
		delete(want, column)
		delete(got, column)
	}
	require.Equal(t, want, got)
}

func instant(t *testing.T, v any) time.Time {
	t.Helper()
	text, ok := v.(string)
	require.True(t, ok, "%v is no time", v)
	at, err := time.Parse(time.RFC3339Nano, text)
	require.NoError(t, err)
	return at
}

// jobRow reads a whole row but for its id: a column that a new River brings is compared, too.
func jobRow(t *testing.T, tx pgx.Tx, id int64) map[string]any {
	t.Helper()
	var row map[string]any
	require.NoError(t, tx.QueryRow(t.Context(), `SELECT to_jsonb(j) - 'id' FROM river_job j WHERE id = $1`, id).Scan(&row))
	require.NotEmpty(t, row)
	return row
}

// golden compares with a stored contract, or stores it anew with -update.
func golden(t *testing.T, path string, got []byte) {
	t.Helper()
	if *update {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, append(got, '\n'), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), string(got)+"\n", "a stored contract changed: consumers and older builds depend on it")
}
