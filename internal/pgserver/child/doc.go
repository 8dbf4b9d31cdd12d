// Package child runs another program that never outlives this one.
//
// The promise: however this process ends (a clean exit, a panic, SIGKILL) the kernel signals the child, so tests,
// the demo and the local stack leave no process behind. On systems other than Linux only orderly ends are covered.
//
// A child runs in a process group of its own, so a Ctrl-C in the terminal reaches its supervisor alone, which then
// decides in which order to stop things.
package child
