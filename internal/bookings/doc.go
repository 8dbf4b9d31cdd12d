// Package bookings accepts bookings: one key, one intention, one booking; one place, one holder at a time.
//
// It owns the tables resources, bookings, allocations and idempotency_keys, and is the only caller of the SQL function
// accept_booking, whose text is in migrations. Moves of a booking after its acceptance are decided in package payments
// and written here, by compare-and-set, in the caller's transaction.
package bookings
