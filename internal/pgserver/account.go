package pgserver

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// ErrUnreachable means that the account the server runs as may not enter a directory that it needs.
var ErrUnreachable = errors.New("directory not reachable")

// account is whom the server runs as. The zero value is "whoever we are".
type account struct {
	name     string
	uid, gid uint32
}

// unprivilegedAccount picks an account for root to drop to, since PostgreSQL refuses to run as root.
func unprivilegedAccount() (account, error) {
	if os.Geteuid() != 0 {
		return account{}, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		found, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, uidErr := strconv.ParseUint(found.Uid, 10, 32)
		gid, gidErr := strconv.ParseUint(found.Gid, 10, 32)
		if err := errors.Join(uidErr, gidErr); err != nil {
			return account{}, fmt.Errorf("account %q: %w", name, err)
		}
		return account{name: name, uid: uint32(uid), gid: uint32(gid)}, nil
	}
	return account{}, errors.New(`PostgreSQL refuses to run as root and there is no account "postgres" or "nobody" to run it as: start this as an ordinary user`)
}

func (a account) attributes() *syscall.SysProcAttr {
	if a.name == "" {
		return &syscall.SysProcAttr{}
	}
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: a.uid, Gid: a.gid}}
}

// own gives a file or directory to the account.
func (a account) own(path string) error {
	if a.name == "" {
		return nil
	}
	if err := os.Chown(path, int(a.uid), int(a.gid)); err != nil {
		return fmt.Errorf("give %s to account %q: %w", path, a.name, err)
	}
	return nil
}

// reach checks that the account may pass through every directory down to path. PostgreSQL's own complaint about it
// names neither the directory nor the account.
func (a account) reach(path string) error {
	if a.name == "" {
		return nil
	}
	for dir := path; ; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		if err != nil {
			return fmt.Errorf("postgres needs %s: %w", dir, err)
		}
		if !a.mayEnter(info) {
			return fmt.Errorf("%w: PostgreSQL runs as account %q, which may not enter %s (mode %v): "+
				"use another directory, open this one with `chmod o+x`, or start this as an ordinary user",
				ErrUnreachable, a.name, dir, info.Mode().Perm())
		}
		if dir == filepath.Dir(dir) {
			return nil
		}
	}
}

func (a account) mayEnter(info fs.FileInfo) bool {
	mode := info.Mode().Perm()
	owner, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case ok && owner.Uid == a.uid:
		return mode&0o100 != 0
	case ok && owner.Gid == a.gid:
		return mode&0o010 != 0
	default:
		return mode&0o001 != 0
	}
}
