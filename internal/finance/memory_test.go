package finance_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"holdfast/internal/finance"
	"holdfast/internal/finance/history"
	"holdfast/internal/testdb"
)

// For the large ones (make finance-big):
//
//	go run ./internal/testdb/cmd/withdb -- go test ./internal/finance -run TestMemory -timeout 4h -v -finance.memory=100000,1000000
var memorySizes = flag.String("finance.memory", "2000,8000", "the two sizes of history whose peak memory is compared, such as 100000,1000000")

// deskEnv holds the work of a process that is measured.
const deskEnv = "HOLDFAST_TEST_FINANCE_DESK"

func TestMain(m *testing.M) {
	if work, told := os.LookupEnv(deskEnv); told {
		work := strings.Split(work, "|")
		run := func() error { return measured(work[0], work[1], work[2], work[3] == "files") }
		if stage, kills := strings.CutPrefix(work[3], "killed in "); kills {
			run = func() error { return killedIn(stage, work[0], work[1], work[2]) }
		}
		if err := run(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	testdb.Main(m)
}

// measured reads and matches a history in a process of its own, and prints its peak memory in KiB and what it took.
func measured(url, dir, window string, files bool) error {
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		return err
	}
	defer pool.Close()
	var w finance.Window
	if err := json.Unmarshal([]byte(window), &w); err != nil {
		return err
	}
	books, err := history.Open(dir)
	if err != nil {
		return err
	}
	defer func() { _ = books.Close() }()
	started := time.Now()
	d := finance.New(pool, port{books, 100}, finance.Config{ReadsPerSecond: 1e6}, quiet())
	if files {
		d = finance.New(pool, nil, finance.Config{}, quiet())
		for _, name := range []string{"activity", "payouts", "payout_reconciliation"} {
			f, err := os.Open(filepath.Join(dir, "theirs", name+".csv"))
			if err != nil {
				return err
			}
			if _, err := d.Import(ctx, finance.File{Name: name, ReadSeeker: f, Covers: &w}); err != nil {
				return err
			}
			_ = f.Close()
		}
	} else if err := d.Read(ctx, w); err != nil {
		return err
	}
	read := time.Since(started)
	if err := d.Match(ctx, w); err != nil {
		return err
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(status)) {
		if peak, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			fmt.Println(strings.TrimSuffix(strings.TrimSpace(peak), " kB"), int(read.Seconds()), int((time.Since(started) - read).Seconds()))
		}
	}
	return nil
}

// Ten times as many transactions take no more memory, and all that was planted is found among them.
func TestMemory(t *testing.T) {
	t.Parallel()
	for _, source := range []string{"port", "files"} {
		var peaks []int
		for size := range strings.SplitSeq(*memorySizes, ",") {
			n, err := strconv.Atoi(size)
			require.NoError(t, err)
			b := setup(t, n, 20)
			window, err := json.Marshal(b.window)
			require.NoError(t, err)
			cmd := exec.CommandContext(t.Context(), os.Args[0])
			cmd.Env = append(os.Environ(), deskEnv+"="+strings.Join([]string{b.URL, b.dir, string(window), source}, "|"))
			cmd.Stderr = os.Stderr
			out, err := cmd.Output()
			require.NoError(t, err)
			var peak, read, match int
			_, err = fmt.Sscan(string(out), &peak, &read, &match)
			require.NoError(t, err)
			t.Logf("%s, %d transactions: peak %d KiB, read in %d s, matched in %d s", source, b.totals.Count, peak, read, match)
			b.agrees()
			require.Equal(t, b.planted(), b.found())
			peaks = append(peaks, peak)
		}
		t.Logf("%s: ratio %.2f", source, float64(peaks[1])/float64(peaks[0]))
		require.LessOrEqual(t, float64(peaks[1]), 1.2*float64(peaks[0]))
	}
}
