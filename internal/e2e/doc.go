// Package e2e holds the tests of the whole system: the three built binaries on a real PostgreSQL, a real JetStream and
// the simulated provider, over real sockets, killed and cut off where it hurts.
//
// The promise: what is asserted here was seen from outside, in the rows, in the stream and in the provider's own
// ledger, and never in what a binary says of itself. A test names the guarantee (G1 … G9) or the incident that it
// proves, and states first what it expects. After every test no process, connection or file of the binaries is left.
//
// The order of reading: main_test.go builds the binaries, bed_test.go puts a deployment together, service_test.go runs
// one binary, host_linux_test.go under another host name, client_test.go is a customer; proxy_test.go cuts connections,
// gate_test.go holds requests to the provider, halts_test.go holds a COMMIT; books_test.go compares rows, ledger, journal
// and stream. The other files are the tests, one idea each.
package e2e
