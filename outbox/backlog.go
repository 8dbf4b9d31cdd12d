package outbox

import (
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast/domain"
	"holdfast/internal/postgres"
)

// MostCounted is how far anything is counted for people: beyond it, how many there are does not matter.
const MostCounted = 10_000

// Backlog counts the effects of a kind in an unfinished state.
type Backlog struct {
	Kind          domain.EffectKind   `json:"kind"`
	Status        domain.EffectStatus `json:"status"`
	Count         int64               `json:"count"` // at most MostCounted
	OldestSeconds float64             `json:"oldest_seconds"`
}

// AgeBand counts the unfinished effects of a kind that are at least From and less than To seconds old.
type AgeBand struct {
	Kind  domain.EffectKind `json:"kind"`
	From  float64           `json:"from"`
	To    float64           `json:"to"`    // 0: no end
	Count int64             `json:"count"` // at most MostCounted for each state
}

// ReadBacklog queues the counting of what is unfinished; every kind and state is there, those of a kind together.
func ReadBacklog(b *pgx.Batch, into *[]Backlog) {
	postgres.All(b, "count what is unfinished", into, countBacklogs, effectKinds(), unfinishedStates())
}

// ofPair is the part of the index that holds one kind in one unfinished state.
const ofPair = `FROM outbox o WHERE o.kind = k.kind AND o.status = s.status AND o.status IN ('pending', 'in_doubt', 'parked')`

const countBacklogs = `
	SELECT k.kind, s.status, counted.count,
	       coalesce(greatest(extract(epoch FROM clock_timestamp() - oldest.created_at), 0), 0)::float8 AS oldest_seconds
	  FROM unnest($1::text[]) WITH ORDINALITY AS k (kind, at)
	 CROSS JOIN unnest($2::text[]) WITH ORDINALITY AS s (status, at)
	 CROSS JOIN LATERAL (
	       SELECT count(*) FROM (SELECT ` + ofPair + ` LIMIT 10000) AS o) AS counted
	  LEFT JOIN LATERAL (SELECT o.created_at ` + ofPair + ` ORDER BY o.created_at, o.id LIMIT 1) AS oldest ON true
	 ORDER BY k.at, s.at`

// ReadAges queues the counting of what is unfinished by age: seven bands of each kind, from a minute up to more than a day.
func ReadAges(b *pgx.Batch, into *[]AgeBand) {
	postgres.All(b, "count what is unfinished by age", into, countAges, effectKinds(), unfinishedStates())
}

const countAges = `
	SELECT k.kind, band.from_s::float8 AS "from", band.to_s::float8 AS "to", sum(counted.count)::bigint AS count
	  FROM unnest($1::text[]) WITH ORDINALITY AS k (kind, at)
	 CROSS JOIN (VALUES (0, 60), (60, 300), (300, 900), (900, 3600), (3600, 21600), (21600, 86400), (86400, 0)) AS band (from_s, to_s)
	 CROSS JOIN unnest($2::text[]) AS s (status)
	 CROSS JOIN LATERAL (
	       SELECT count(*) FROM (
	           SELECT ` + ofPair + `
	              AND o.created_at <= CASE band.from_s WHEN 0 THEN 'infinity' ELSE statement_timestamp() - band.from_s * interval '1 second' END
	              AND o.created_at > CASE band.to_s WHEN 0 THEN '-infinity' ELSE statement_timestamp() - band.to_s * interval '1 second' END
	            LIMIT 10000) AS o) AS counted
	 GROUP BY k.at, k.kind, band.from_s, band.to_s
	 ORDER BY k.at, band.from_s`

// ReadStuck queues the counting of what is stuck, up to one more than MostCounted. What is not late yet is looked at as far as List
// looks at it.
func ReadStuck(b *pgx.Batch, deadAfter time.Duration, into *int64) {
	postgres.One(b, "count what is stuck", func(row struct{ Count int64 }) { *into = row.Count }, countStuck,
		pgx.NamedArgs{"kinds": effectKinds(), "states": unfinishedStates(), "dead_after": deadAfter})
}

const countStuck = `
	SELECT least(sum(counted.count), 10001)::bigint AS count
	  FROM unnest(@kinds::text[]) AS k (kind)
	 CROSS JOIN unnest(@states::text[]) AS s (status)
	 CROSS JOIN LATERAL (
	       SELECT (SELECT count(*) FROM (
	                  SELECT ` + ofPair + ` AND o.created_at < CASE WHEN s.status <> 'pending' THEN 'infinity'
	                         WHEN k.kind = 'publish' THEN ` + lateEvents + ` ELSE ` + lateOthers + ` END
	                   LIMIT 10001) AS o)
	            + (SELECT count(*) FROM (
	                  SELECT o.* ` + ofPair + ` AND s.status = 'pending'
	                     AND o.created_at >= CASE k.kind WHEN 'publish' THEN ` + lateEvents + ` ELSE ` + lateOthers + ` END
	                   ORDER BY o.created_at, o.id LIMIT ` + youngest + `) AS o
	                WHERE NOT ` + carried + `) AS count) AS counted`

// ReadWaiting queues the counting of the pending effects of a kind, up to MostCounted.
func ReadWaiting(b *pgx.Batch, kind domain.EffectKind, into *int64) {
	postgres.One(b, "count what waits", func(row struct{ Count int64 }) { *into = row.Count }, `
		SELECT count(*) FROM (SELECT FROM outbox o WHERE o.kind = $1 AND o.status = 'pending' LIMIT $2) AS o`, kind, MostCounted)
}
