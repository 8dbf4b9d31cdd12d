// Package testnats runs a NATS server with JetStream inside the test's own process.
//
// The promise: a server of its own for each test, ready in a millisecond, with its store in the test's temporary
// directory; it can be stopped and started again on the same store, and its clients reconnect, so that an outage of
// the broker is one call. It listens on nothing unless a test asks for a port (see [NewListening]).
package testnats
