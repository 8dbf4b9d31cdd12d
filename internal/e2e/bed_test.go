package e2e_test

import (
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/testdb"
	"holdfast/internal/testnats"
	"holdfast/payments/stripesim"
)

const apiKey = "sk_test_e2e"

// price is what an hour of every resource of the tests costs.
const price = 2500

// bed is what a deployment stands on: a database, a broker and a provider of its own. The binaries are started on it.
type bed struct {
	*testing.T

	db   *testdb.DB
	nats *testnats.Server
	sim  *stripesim.Server
	dir  string   // logs of the binaries
	tmp  string   // their temporary directory
	env  []string // NAME=value, later ones win
}

// beds bounds how many there are at a time: one takes up to a hundred connections of the server that all share.
var beds = make(chan struct{}, 3)

// newBed makes a bed. The environment shortens what is long in production, so that a test of an hour takes seconds; env
// adds to it. observe, which may be nil, sees each request to the provider before anything is decided.
func newBed(t *testing.T, observe func(stripesim.JournalEntry), env ...string) *bed {
	t.Helper()
	return newBedOn(t, func() *testdb.DB { return testdb.New(t) }, observe, env...)
}

// newBedOn makes a bed on a database that is made when it is the bed's turn.
func newBedOn(t *testing.T, database func() *testdb.DB, observe func(stripesim.JournalEntry), env ...string) *bed {
	t.Helper()
	beds <- struct{}{}
	t.Cleanup(func() { <-beds })
	b := &bed{T: t, db: database(), dir: t.TempDir(), tmp: t.TempDir()}
	t.Cleanup(b.nothingLeft) // runs when every process of the test has ended, and before its database goes
	b.nats = testnats.NewListening(t)
	var err error
	b.sim, err = stripesim.Start(t.Context(), "127.0.0.1:0", stripesim.Config{Observe: observe})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.sim.Close()) })
	b.env = append([]string{
		"TMPDIR=" + b.tmp,
		"DATABASE_URL=" + b.db.URL, "NATS_URL=" + b.nats.URL(), "STRIPE_API_BASE=" + b.sim.URL, "STRIPE_API_KEY=" + apiKey,
		"STRIPE_TIMEOUT=2s", "JOB_TIMEOUT=10s", "RESCUE_AFTER=15s", "SEND_BACKOFF=50ms", "RECONCILE_INTERVAL=200ms",
		"PUBLISH_BACKOFF=100ms", "PUBLISH_MAX_BACKOFF=400ms", "DB_MAX_CONNS=10",
	}, env...)
	return b
}

// nothingLeft asserts that the binaries have left no connection and no file, and never stood in each other's way (G2):
// the counters of a connection are complete once it has ended.
func (b *bed) nothingLeft() {
	if b.Failed() {
		return
	}
	eventually(b.T, time.Minute, "no connection of the binaries is left", func() bool {
		return count(b, `SELECT count(*) FROM pg_stat_activity
			WHERE datname = current_database() AND application_name LIKE 'holdfast-%'`) == 0
	})
	require.Zero(b, count(b, `SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()`), "deadlocks")
	left, err := os.ReadDir(b.tmp)
	require.NoError(b, err)
	require.Empty(b, left, "temporary files of the binaries")
}

// command runs a sub-command to its end.
func (b *bed) command(binary string, args ...string) (stdout, stderr string, code int) {
	b.Helper()
	return run(b.T, b.env, binary, args...)
}

// run runs a sub-command to its end with nothing but env in its environment.
func run(t *testing.T, env []string, binary string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	logs := t.TempDir()
	out, err := os.Create(filepath.Join(logs, "out"))
	require.NoError(t, err)
	defer func() { require.NoError(t, out.Close()) }()
	complaints, err := os.Create(filepath.Join(logs, "err"))
	require.NoError(t, err)
	defer func() { require.NoError(t, complaints.Close()) }()
	cmd := exec.CommandContext(t.Context(), binaries.path(t, binary), args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = env, out, complaints
	if cmd.Env == nil {
		cmd.Env = []string{} // nil would hand down the test's own environment
	}
	err = cmd.Run()
	if cmd.ProcessState == nil {
		require.NoError(t, err)
	}
	return read(t, out.Name()), read(t, complaints.Name()), cmd.ProcessState.ExitCode()
}

// made runs a command that makes something and returns one member of the JSON that it prints.
func (b *bed) made(member, binary string, args ...string) string {
	b.Helper()
	stdout, stderr, code := b.command(binary, append(args, "--json")...)
	require.Zero(b, code, stderr)
	var found map[string]any
	require.NoError(b, json.Unmarshal([]byte(stdout), &found), stdout)
	text, ok := found[member].(string)
	require.True(b, ok, stdout)
	return text
}

// resource makes a resource by the operator's command.
func (b *bed) resource(places int, hold time.Duration) string {
	b.Helper()
	return b.made("id", "api", "resource", "create", "--name", "Court", "--time-zone", "Europe/Berlin",
		"--places", strconv.Itoa(places), "--price", strconv.Itoa(price), "--currency", "eur", "--hold", hold.String())
}

// token makes a customer's token by the operator's command.
func (b *bed) token(client string) string {
	b.Helper()
	return b.made("token", "api", "token", "create", "--client", client, "--scope", "bookings:read,bookings:write")
}

// count runs a query that counts.
func count(b *bed, sql string, args ...any) int {
	b.Helper()
	return value[int](b, sql, args...)
}

// value runs a query for one value.
func value[V any](b *bed, sql string, args ...any) V {
	b.Helper()
	var v V
	require.NoError(b, b.db.Pool.QueryRow(contextOf(b.T), sql, args...).Scan(&v))
	return v
}

// nextPort is below the range from which the kernel picks ports for outgoing connections: none of those can take the
// port of a service between two of its runs.
var nextPort atomic.Int32

// freeAddress picks a loopback address that this process gives to nobody else.
func freeAddress(t *testing.T) string {
	t.Helper()
	const first, ports = 12000, 18000
	for range ports {
		port := first + (os.Getpid()*97+int(nextPort.Add(1)))%ports
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", address)
		if err == nil {
			require.NoError(t, listener.Close())
			return address
		}
	}
	require.FailNow(t, "no free port")
	return ""
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	return string(text)
}
