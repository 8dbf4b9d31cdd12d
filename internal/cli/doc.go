// Package cli is what the commands of all binaries share: one struct of flags and environment variables per command,
// all problems with them told at once, and exit codes that mean the same everywhere.
package cli
