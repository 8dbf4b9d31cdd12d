// Package testsize says how often the tests repeat one proof. The usual run, `make test`, holds every proof; the full one,
// `make test SUITE=full`, repeats them over more seeds, requests and combinations, and is what to run before a release.
package testsize

import "os"

// Env names the environment variable that asks for the full run.
const Env = "HOLDFAST_SUITE"

// Full tells whether the full run is asked for.
func Full() bool {
	size, _ := os.LookupEnv(Env)
	return size == "full"
}

// Of is a number that differs by run.
func Of(usual, full int) int {
	if Full() {
		return full
	}
	return usual
}
