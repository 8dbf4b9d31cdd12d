package pgserver

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// BinEnv names the environment variable that says where PostgreSQL's binaries are.
const BinEnv = "HOLDFAST_PG_BIN"

// ErrNotInstalled means that no PostgreSQL server binaries were found.
var ErrNotInstalled = errors.New("no PostgreSQL server binaries found: install them (Debian and Ubuntu: " +
	"`apt-get install postgresql`; macOS: `brew install postgresql@17`) or name their directory in " + BinEnv)

// findBinaries returns the directory of `postgres` and `initdb`. A directory that was asked for is used or refused,
// never replaced by another.
func findBinaries(asked string) (string, error) {
	if asked == "" {
		asked, _ = os.LookupEnv(BinEnv)
	}
	if asked != "" {
		if !hasBinaries(asked) {
			return "", fmt.Errorf("no `postgres` and `initdb` in %s: %w", asked, ErrNotInstalled)
		}
		return filepath.Abs(asked)
	}
	if path, err := exec.LookPath("postgres"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil && hasBinaries(filepath.Dir(path)) {
			return filepath.Abs(filepath.Dir(path))
		}
	}
	var found []string
	for _, pattern := range []string{
		"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/opt/homebrew/opt/postgresql@*/bin", "/usr/local/pgsql/bin",
	} {
		dirs, _ := filepath.Glob(pattern)
		found = append(found, slices.DeleteFunc(dirs, func(dir string) bool { return !hasBinaries(dir) })...)
	}
	if len(found) == 0 {
		return "", ErrNotInstalled
	}
	return slices.MaxFunc(found, func(a, b string) int { return majorVersion(a) - majorVersion(b) }), nil
}

func hasBinaries(dir string) bool {
	for _, program := range []string{"postgres", "initdb"} {
		info, err := os.Stat(filepath.Join(dir, program))
		if err != nil || info.IsDir() || info.Mode()&0o111 == 0 {
			return false
		}
	}
	return true
}

// majorVersion reads the version out of a path such as /usr/lib/postgresql/17/bin; 0 where there is none.
func majorVersion(dir string) int {
	name := filepath.Base(filepath.Dir(dir))
	version, err := strconv.Atoi(name[strings.LastIndexAny(name, "-@")+1:])
	if err != nil {
		return 0
	}
	return version
}
