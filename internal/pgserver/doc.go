// Package pgserver runs a private PostgreSQL for tests, the demo and the local stack.
//
// The promise: a server of its own in about a second, on a free loopback port and a private unix socket, which
// nobody else on the machine can sign in to, and nothing left behind: after [Server.Stop] no process and no file
// that it was not asked to keep, and no process either when the parent is killed.
//
// PostgreSQL refuses to run as root. Started by root, it runs as the account "postgres", or else "nobody", and that
// account owns the data directory; started by anybody else it runs as them.
//
// It is not a way to run PostgreSQL in production, and it does not download anything: the binaries of a local
// installation are found in Options.BinDir, $HOLDFAST_PG_BIN, $PATH and the usual places, newest version first.
package pgserver
