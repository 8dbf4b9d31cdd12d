package outbox

import (
	"github.com/jackc/pgx/v5"

	"holdfast/domain"
	"holdfast/internal/postgres"
)

// Story is all that our tables tell of a booking's effects and of what was done to them by hand: each list the newest first, and at
// most so long as was asked for.
type Story struct {
	Effects []Effect // without the events' payloads
	Actions []Action
}

// Tell queues the reading of a booking's story into s.
func Tell(b *pgx.Batch, id domain.BookingID, most int, s *Story) {
	postgres.All(b, "read the effects of a booking", &s.Effects, `
		SELECT `+effectColumns+` FROM (
		    SELECT id, booking_id, kind, status, attempts, last_error, due_at, created_at, finished_at, job_id, event_type, event_seq,
		           '{}'::jsonb AS payload, stream, stream_sequence, duplicate
		      FROM outbox WHERE booking_id = $1) o
		 ORDER BY o.created_at DESC, o.id DESC LIMIT $2`, id, most)
	postgres.All(b, "read what was done to a booking by hand", &s.Actions, `
		SELECT id, actor, action, effect_id, booking_id, reason, before, after, at
		  FROM operator_actions
		 WHERE booking_id = $1
		 ORDER BY at DESC, id DESC LIMIT $2`, id, most)
}
