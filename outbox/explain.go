package outbox

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"holdfast/domain"
	"holdfast/internal/postgres"
)

// standing is what an effect's own row does not tell.
type standing struct {
	ID       domain.EffectID
	Lost     string     // pending: why no live job carries it; empty: one does
	HeldBack bool       // pending: by an earlier event of its booking
	Late     bool       // older than its service level
	JobAt    *time.Time // when its own job, if that waits, is due
	Age      time.Duration
}

// explainAll says of each effect in plain words why it is where it is, and what comes next. Jobs and earlier events are looked up for
// what is pending only, each by an index.
func explainAll(ctx context.Context, q postgres.Querier, effects []Effect, pauses []Pausing, deadAfter time.Duration) ([]Row, error) {
	rows := make([]Row, 0, len(effects))
	if len(effects) == 0 {
		return rows, nil
	}
	found, err := q.Query(ctx, standings, standingArgs(effects, deadAfter))
	if err != nil {
		return nil, err
	}
	all, err := pgx.CollectRows(found, pgx.RowToStructByName[standing])
	if err != nil {
		return nil, err
	}
	by := make(map[domain.EffectID]standing, len(all))
	for _, s := range all {
		by[s.ID] = s
	}
	for _, e := range effects {
		rows = append(rows, explainEffect(inUTC(e), by[e.ID], pauses))
	}
	return rows, nil
}

const standings = `
	SELECT o.id, ` + fate + ` AS lost, o.status = 'pending' AND ` + heldBack + ` AS held_back,
	       ` + late + ` AS late,
	       CASE WHEN o.status = 'pending' THEN (
	           SELECT j.scheduled_at FROM river_job j
	            WHERE j.id = o.job_id AND j.state IN ('available', 'retryable', 'scheduled')) END AS job_at,
	       greatest(clock_timestamp() - o.created_at, interval '0') AS age
	  FROM unnest(@ids::uuid[], @bookings::uuid[], @kinds::text[], @statuses::text[], @seqs::bigint[], @jobs::bigint[], @times::timestamptz[])
	    AS o (id, booking_id, kind, status, event_seq, job_id, created_at)`

// standingArgs hands over what of the effects is known already, so that their rows are not read twice.
func standingArgs(effects []Effect, deadAfter time.Duration) pgx.NamedArgs {
	var ids, bookings []uuid.UUID
	var kinds, statuses []string
	var seqs []int64
	var jobs []*int64
	var times []time.Time
	for _, e := range effects {
		ids, bookings = append(ids, e.ID.UUID), append(bookings, e.BookingID.UUID)
		kinds, statuses = append(kinds, string(e.Kind)), append(statuses, string(e.Status))
		seqs, jobs, times = append(seqs, e.EventSeq), append(jobs, e.JobID), append(times, e.CreatedAt)
	}
	return pgx.NamedArgs{
		"ids": ids, "bookings": bookings, "kinds": kinds, "statuses": statuses, "seqs": seqs, "jobs": jobs, "times": times,
		"dead_after": deadAfter,
	}
}

// inUTC shows an effect's times as every other time that leaves the system.
func inUTC(e Effect) Effect {
	e.DueAt, e.CreatedAt = e.DueAt.UTC(), e.CreatedAt.UTC()
	if e.FinishedAt != nil {
		at := e.FinishedAt.UTC()
		e.FinishedAt = &at
	}
	return e
}

func explainEffect(e Effect, s standing, pauses []Pausing) Row {
	r := Row{Effect: e, Age: s.Age}
	nobody := Next{What: "nothing, until a person acts"}
	switch e.Status {
	case domain.EffectParked:
		r.Stuck, r.Reason, r.Next = true, "parked, needs a person: "+e.LastError, nobody
	case domain.EffectInDoubt:
		r.Stuck, r.Reason = true, "in doubt; the reconciler asks the provider next at "+e.DueAt.Format(time.RFC3339)
		if e.LastError != "" {
			r.Reason += "; " + e.LastError
		}
		r.Next = Next{What: "the reconciler asks the provider", At: &e.DueAt}
		if e.Kind == domain.EffectPublish || e.Kind == domain.EffectRefresh { // no reconciler takes these
			r.Reason, r.Next = "in doubt; "+e.LastError, nobody
		}
	case domain.EffectPending:
		r.Stuck, r.Reason = explainPending(e, s, pauses)
		r.Next = nextOfPending(e, s, pauses)
	case domain.EffectDone, domain.EffectNotNeeded, domain.EffectDiscarded:
		r.Reason, r.Next = "finished", Next{What: "nothing: it is finished"}
	default:
		r.Stuck, r.Reason, r.Next = true, "its status means nothing to this version", nobody
	}
	return r
}

func explainPending(e Effect, s standing, pauses []Pausing) (stuck bool, reason string) {
	paused := pausing(pauses, e.Kind)
	switch {
	case paused >= 0: // first: whatever else is the matter, nothing goes on before it is resumed
		return s.Late || s.Lost != "", pauses[paused].String()
	case s.HeldBack && (s.Late || s.Lost != ""):
		return true, "waits for an earlier event of its booking"
	case s.Lost != "":
		return true, "no live job carries it: " + s.Lost + "; the sweep will give it a new one"
	case s.Late && e.LastError != "":
		return true, "late: " + e.LastError
	case s.Late:
		return true, "late: older than its service level"
	case e.LastError != "":
		return false, "tried again soon: " + e.LastError
	default:
		return false, "on its way"
	}
}

// nextOfPending tells what a pending effect waits for.
func nextOfPending(e Effect, s standing, pauses []Pausing) Next {
	switch {
	case pausing(pauses, e.Kind) >= 0:
		return Next{What: "nothing, until the kind is resumed"}
	case s.HeldBack:
		return Next{What: "it follows when the earlier event of its booking is told"}
	case s.Lost != "":
		return Next{What: "the sweep gives it a new job, within seconds of a reconciler's running"}
	case s.JobAt != nil:
		at := s.JobAt.UTC()
		return Next{What: "a worker takes it", At: &at}
	default:
		return Next{What: "a worker is at it"}
	}
}

func pausing(pauses []Pausing, kind domain.EffectKind) int {
	return slices.IndexFunc(pauses, func(p Pausing) bool { return p.Kind == kind })
}
