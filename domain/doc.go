// Package domain says what a booking, its money, a key, an effect and an event are, and which moves between their
// states are legal. It does no I/O, reads no clock and takes no context: everything here is a value or a pure function,
// so that every rule can be tested whole.
package domain
