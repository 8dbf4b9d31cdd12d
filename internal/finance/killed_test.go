package finance_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/internal/finance"
	"holdfast/internal/finance/history"
	"holdfast/payments"
)

// killedIn reads and matches a history in a process of its own, which dies in the middle of a stage, as by kill -9.
func killedIn(stage, url, dir, window string) error {
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		return err
	}
	var w finance.Window
	if err := json.Unmarshal([]byte(window), &w); err != nil {
		return err
	}
	books, err := history.Open(dir)
	if err != nil {
		return err
	}
	late := 0
	d := finance.New(pool, port{books, 20}, finance.Config{ReadsPerSecond: 1e6, Stride: 50, Progress: func(p finance.Progress) {
		if p.Stage == stage && p.Done > 0.4 {
			if late++; late == 2 { // of a window that is being read, a page is stored
				_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			}
		}
	}}, quiet())
	return errors.Join(d.Read(ctx, w), d.Match(ctx, w))
}

// die runs such a process to its end.
func (b *bed) die(stage string) {
	b.Helper()
	window, err := json.Marshal(b.window)
	require.NoError(b, err)
	cmd := exec.CommandContext(b.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), deskEnv+"="+strings.Join([]string{b.URL, b.dir, string(window), "killed in " + stage}, "|"))
	out, err := cmd.CombinedOutput()
	dead := &exec.ExitError{}
	require.ErrorAs(b, err, &dead, "%s", out)
	status, _ := dead.Sys().(syscall.WaitStatus)
	require.Equal(b, syscall.SIGKILL, status.Signal(), "%s", out)
}

// everything is a digest of all that the desk keeps, but for its runs.
func (b *bed) everything() (digest string) {
	b.Helper()
	b.scan(`
		SELECT md5(string_agg(row, chr(10) ORDER BY row))
		  FROM (SELECT i::text AS row FROM reconciliation_items i UNION ALL SELECT t::text FROM provider_transactions t UNION ALL
		        SELECT e::text FROM ledger_entries e UNION ALL SELECT p::text FROM payouts p UNION ALL SELECT o::text FROM payout_transactions o UNION ALL
		        SELECT f::text FROM finance_periods f UNION ALL SELECT a::text FROM operator_actions a) AS all_of_it`, &digest)
	return digest
}

// One process is killed while it reads, and another while it matches; then two report of the period at once. Both are complete and alike,
// each exception is there once, and no window that was read whole is read again.
func TestReport_KilledTwiceAndThenTwoAtOnce(t *testing.T) {
	t.Parallel()
	b := setup(t, 1500, 2)
	count := func(query string, args ...any) (n int) {
		t.Helper()
		b.scan(query, &n, args...)
		return n
	}
	b.die("read")
	stored := count(`SELECT count(*) FROM provider_transactions`)
	require.True(t, stored > 0 && stored < b.totals.Count, "%d of %d", stored, b.totals.Count)
	require.Equal(t, 1, count(`SELECT count(*) FROM reconciliation_runs WHERE kind = 'read' AND status = 'running'`))
	require.ErrorIs(t, b.desk(nil).Match(t.Context(), b.window), finance.ErrIncomplete)
	require.Empty(t, b.found())
	b.die("match")
	b.agrees()
	require.Positive(t, count(`SELECT count(*) FROM reconciliation_runs WHERE kind = 'match' AND status = 'running' AND reached_at > from_at AND reached_at < to_at`))
	require.Subset(t, b.planted(), b.found(), "what is found so far is true")

	period := finance.Period{From: b.window.From.Format(time.DateOnly), To: b.window.To.Format(time.DateOnly), Zone: "UTC"}
	var both sync.WaitGroup
	var reports [2]finance.Report
	for i := range reports {
		both.Go(func() {
			d := finance.New(b.Pool, b.provider(), finance.Config{ReadsPerSecond: 1e6, Stride: 50, Wait: time.Minute}, quiet())
			var err error
			reports[i], err = d.Report(t.Context(), period)
			require.NoError(t, err)
		})
	}
	both.Wait()
	for _, r := range reports {
		require.True(t, r.Complete, r.Incomplete)
		require.Len(t, r.Exceptions, len(b.planted()))
		for i := range r.Exceptions {
			r.Exceptions[i].Age = 0 // they were not asked for at the same moment
		}
	}
	require.Equal(t, reports[0].Exceptions, reports[1].Exceptions)
	require.Equal(t, reports[0].Identities, reports[1].Identities)
	require.Equal(t, b.planted(), b.found())
	require.Equal(t, len(b.planted()), count(`SELECT count(*) FROM reconciliation_items`), "and none was there for a while")
	b.agrees()
	require.Equal(t, 14, count(`SELECT count(*) FROM reconciliation_runs WHERE kind = 'read' AND status = 'complete'`), "each day once")
}

// What arrives in days that a killed run had passed is compared by the next run, all the same.
func TestMatch_WhatArrivesBehindAKilledRun(t *testing.T) {
	t.Parallel()
	b := setup(t, 1500, 0)
	require.NoError(t, b.desk(b.provider()).Read(t.Context(), b.window))
	b.die("match")
	require.Empty(t, b.found())
	require.NoError(t, payments.StoreTransactions(t.Context(), b.Pool, []payments.Transaction{{
		ID: "txn_late", Type: "charge", Category: "charge", SourceID: "ch_late", IntentID: "pi_late", Amount: domain.Money{Amount: 100, Currency: "USD"}, Fee: 32, Net: 68,
		Created: b.window.From, Available: b.window.From,
	}}))
	require.NoError(t, b.desk(nil).Match(t.Context(), b.window))
	require.Equal(t, []string{"charged_without_booking txn_late"}, b.found())
}
