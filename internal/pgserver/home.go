package pgserver

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// home is where a server lives. run is always temporary and holds the socket (whose path must be short); base holds
// what outlives a start: the data, the password and the log. Without a directory to keep, base is run.
type home struct {
	bin      string
	account  account
	run      string
	base     string
	data     string
	password string
	lock     *os.File
}

func (h *home) socketDir() string { return h.run }
func (h *home) logFile() string   { return filepath.Join(h.base, "postgres.log") }

// throwAway tells whether nothing is kept: there is no directory that outlives the server.
func (h *home) throwAway() bool { return h.base == h.run }

func openHome(opts Options, bin string) (*home, error) {
	account, err := unprivilegedAccount()
	if err != nil {
		return nil, err
	}
	if err := account.reach(bin); err != nil {
		return nil, err
	}
	run, lock, err := newRunDir(account, opts.Dir == "" && !opts.Durable)
	if err != nil {
		return nil, err
	}
	h := &home{bin: bin, account: account, run: run, base: run, lock: lock}
	if opts.Dir != "" {
		h.base, err = openKept(opts.Dir, account)
	}
	if err == nil {
		h.data = filepath.Join(h.base, "data")
		h.password, err = h.loadPassword()
	}
	if err != nil {
		return nil, errors.Join(err, h.remove())
	}
	return h, nil
}

// openKept makes a directory that outlives the server and gives it to the account the server runs as.
func openKept(dir string, account account) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("postgres directory: %w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("postgres directory: %w", err)
	}
	if err := account.own(dir); err != nil {
		return "", err
	}
	if err := account.reach(dir); err != nil {
		return "", err
	}
	return dir, nil
}

// loadPassword reads the superuser's password or makes one, in a file that only the server's account and we can read.
func (h *home) loadPassword() (string, error) {
	file := filepath.Join(h.base, "password")
	text, err := os.ReadFile(filepath.Clean(file))
	switch {
	case err == nil:
		return strings.TrimSpace(string(text)), nil
	case !errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("postgres password: %w", err)
	}
	password := rand.Text()
	if err := os.WriteFile(file, []byte(password+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("postgres password: %w", err)
	}
	return password, h.account.own(file)
}

// initialise makes the database cluster unless there is one. It is made beside its place and renamed, so that an
// interrupted run never leaves half a cluster to be taken for a whole one.
func (h *home) initialise(ctx context.Context) error {
	if _, err := os.Stat(filepath.Join(h.data, "PG_VERSION")); err == nil {
		return nil
	}
	fresh := h.data + ".new"
	if err := os.RemoveAll(fresh); err != nil {
		return fmt.Errorf("initialise postgres: %w", err)
	}
	// A throw-away server is asked by hundreds of tests. Answering SCRAM costs a client 4,096 rounds for each connection, and
	// under the race detector that is more than all else about it.
	auth := "scram-sha-256"
	if h.throwAway() {
		auth = "password"
	}
	output, err := h.command(ctx, "initdb",
		"--pgdata", fresh, "--username", superuser, "--pwfile", filepath.Join(h.base, "password"),
		"--auth-local", "trust", "--auth-host", auth,
		"--encoding", "UTF8", "--locale", "C", "--no-sync").CombinedOutput()
	if err != nil {
		return fmt.Errorf("initialise postgres: %w; initdb said:\n\t%s", err,
			strings.ReplaceAll(strings.TrimSpace(string(output)), "\n", "\n\t"))
	}
	if err := os.Rename(fresh, h.data); err != nil {
		return fmt.Errorf("initialise postgres: %w", err)
	}
	return nil
}

// remove deletes what was temporary. The lock goes last: while it is held nobody sweeps the directory.
func (h *home) remove() error {
	return errors.Join(os.RemoveAll(h.run), h.lock.Close())
}
