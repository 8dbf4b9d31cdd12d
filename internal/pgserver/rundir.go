package pgserver

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

const (
	runPrefix   = "holdfast-pg-"
	sweepAge    = time.Minute // a younger directory may not have its lock yet
	socketRoom  = 100         // a unix socket's path has 107 bytes at most
	socketName  = ".s.PGSQL.65535"
	randomRoom  = 12 // what MkdirTemp adds to the prefix
	lockName    = "lock"
	fallbackTmp = "/tmp"

	// Half of what copying a database costs is the file system: a throw-away server lives in memory where there is
	// plenty. A container's usual 64 MB is not.
	memoryTmp  = "/dev/shm"
	memoryRoom = 4 << 30
)

// newRunDir makes the temporary directory of a server and holds a lock in it for as long as this process lives.
// Directories whose owner was killed, and so could not remove them, are removed on the way.
func newRunDir(account account, throwAway bool) (string, *os.File, error) {
	parent := runParent(account, throwAway)
	sweep(parent)
	dir, err := os.MkdirTemp(parent, runPrefix)
	if err != nil {
		return "", nil, fmt.Errorf("postgres run directory: %w", err)
	}
	lock, err := os.Create(filepath.Join(dir, lockName)) //nolint:gosec // our own fresh directory
	if err == nil {
		err = syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	}
	if err == nil {
		err = account.own(dir)
	}
	if err != nil {
		return "", nil, errors.Join(fmt.Errorf("postgres run directory: %w", err), os.RemoveAll(dir))
	}
	return dir, lock, nil
}

func runParent(account account, throwAway bool) string {
	if throwAway && roomy(memoryTmp) {
		return memoryTmp
	}
	parent := os.TempDir()
	length := len(parent) + 1 + len(runPrefix) + randomRoom + 1 + len(socketName)
	if length > socketRoom || account.reach(parent) != nil {
		return fallbackTmp
	}
	return parent
}

// roomy says whether a directory is there, open to everybody, and has room for many databases.
func roomy(dir string) bool {
	var stat syscall.Statfs_t
	info, err := os.Stat(dir)
	if err != nil || info.Mode().Perm() != 0o777 || syscall.Statfs(dir, &stat) != nil {
		return false
	}
	return uint64(stat.Bavail)*uint64(stat.Bsize) >= memoryRoom //nolint:gosec,unconvert // the types differ by system
}

// sweep removes run directories whose lock nobody holds. It is a courtesy: what it may not touch, it leaves.
func sweep(parent string) {
	dirs, _ := filepath.Glob(filepath.Join(parent, runPrefix+"*"))
	for _, dir := range dirs {
		info, err := os.Stat(dir)
		if err != nil || time.Since(info.ModTime()) < sweepAge {
			continue
		}
		lock, err := os.Open(filepath.Join(dir, lockName)) //nolint:gosec // matched by our own prefix
		if err != nil {
			continue
		}
		if syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			_ = os.RemoveAll(dir)
		}
		_ = lock.Close()
	}
}
