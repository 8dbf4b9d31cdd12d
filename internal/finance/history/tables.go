package history

// Table is a table of our side: a file of its name in ours/, without a header, with these columns.
type Table struct{ Name, Columns string }

// Tables are those of our side, in an order in which they can be filled.
func Tables() []Table {
	return []Table{
		{"bookings", "id, client_id, resource_id, during, quantity, amount, currency, customer_name, customer_email, status, hold_expires_at, created_at, updated_at"},
		{"payments", "id, booking_id, amount, currency, amount_received, payment_method, provider_intent_id, status, created_at, updated_at"},
		{"outbox", "id, booking_id, kind, event_type, event_seq, status, due_at, stream, stream_sequence, created_at, finished_at"},
		{"refunds", "id, payment_id, effect_id, amount, currency, reason, requested_by, request_reason, status, provider_refund_id, settled_at, created_at, updated_at"},
		{"disputes", "id, payment_id, amount, currency, reason, status, withdrawn, opened_at, created_at, updated_at"},
	}
}
