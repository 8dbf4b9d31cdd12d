package outbox

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"holdfast/domain"
	"holdfast/internal/postgres"
)

// effectKinds lists every kind.
func effectKinds() []domain.EffectKind {
	return []domain.EffectKind{
		domain.EffectCharge, domain.EffectCancel, domain.EffectRefund, domain.EffectRefresh, domain.EffectPublish,
	}
}

// unfinishedStates lists every unfinished state, by name.
func unfinishedStates() []domain.EffectStatus {
	return []domain.EffectStatus{domain.EffectInDoubt, domain.EffectParked, domain.EffectPending}
}

// youngest is how many effects that are not late are looked at, of each kind, to find those that no live job carries.
const youngest = `2000`

// late is an SQL condition: effect o is older than its kind's service level.
const late = `(o.created_at < statement_timestamp() - CASE o.kind WHEN 'publish' THEN interval '1 minute' ELSE interval '5 minutes' END)`

// pageQuery reads effects in the order of a listing.
type pageQuery struct {
	sql  string
	args pgx.NamedArgs
}

// most limits what is read. The number is written into the statement: the planner has to know that little is wanted.
func (p pageQuery) most(n int) pageQuery {
	p.sql = strings.ReplaceAll(p.sql, `@limit`, strconv.Itoa(n))
	return p
}

func (p pageQuery) read(ctx context.Context, q postgres.Querier) ([]Effect, error) {
	rows, err := q.Query(ctx, p.sql, p.args)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByName[Effect])
}

// pageQueries are what is to be read for a page, one after the other until it is full.
func pageQueries(f Filter, after cursor) []pageQuery {
	args := func() pgx.NamedArgs {
		return pgx.NamedArgs{
			"booking": f.Booking, "kind": string(f.Kind), "status": string(f.Status), "stuck": f.Stuck, "older_than": f.OlderThan,
			"dead_after": f.DeadAfter, "after_created": after.CreatedAt, "after_id": after.ID,
		}
	}
	switch {
	case f.Booking != domain.BookingID{}:
		return []pageQuery{{sql: ofBooking(f, after), args: args()}}
	case f.Status.Finished():
		return []pageQuery{{sql: finished(f, after), args: args()}}
	}
	if f.Kind != "" && !slices.Contains(effectKinds(), f.Kind) {
		return nil // there is no such kind, and nothing of it
	}
	var queries []pageQuery
	for _, status := range unfinishedStates() {
		if f.Status != "" && f.Status != status || status < after.Status {
			continue
		}
		queries = append(queries, pageQuery{sql: unfinished(f, status, after), args: args()})
	}
	return queries
}

// unfinished walks the index of what is unfinished once for each kind, and merges the walks by age. Each walk is a range of the
// index, so that a page costs what it shows, however many are stuck.
func unfinished(f Filter, status domain.EffectStatus, after cursor) string {
	kinds := effectKinds()
	if f.Kind != "" {
		kinds = []domain.EffectKind{f.Kind}
	}
	var walks []string
	for _, kind := range kinds {
		where := fmt.Sprintf(` FROM outbox o WHERE o.kind = '%s' AND o.status = '%s'`, kind, status) + olderThan(f)
		from := `'-infinity'`
		if after.Status == status {
			from = `@after_created::timestamptz`
			where += ` AND (o.created_at > @after_created OR o.id > @after_id::uuid)`
		}
		all, lateOnes, young := where+` AND o.created_at >= `+from, where+` AND o.created_at >= `+from+` AND o.created_at < `+lateBefore(kind),
			where+` AND o.created_at >= greatest(`+from+`, `+lateBefore(kind)+`)` // one bound: of two the index would use either
		if !f.Stuck || status != domain.EffectPending {
			walks = append(walks, `(SELECT `+effectColumns+all+byAge+` LIMIT @limit)`)
			continue
		}
		walks = append(walks, `(SELECT `+effectColumns+lateOnes+byAge+` LIMIT @limit)`, `(SELECT `+effectColumns+`
			FROM (SELECT o.*`+young+byAge+` LIMIT `+youngest+`) o WHERE NOT `+carried+byAge+` LIMIT @limit)`)
	}
	return `SELECT ` + effectColumns + ` FROM (` + strings.Join(walks, ` UNION ALL `) + `) AS o` + byAge + ` LIMIT @limit`
}

const byAge = ` ORDER BY o.created_at, o.id`

// SQL expressions: what was committed before is older than its kind's service level.
const (
	lateEvents = `statement_timestamp() - interval '1 minute'`
	lateOthers = `statement_timestamp() - interval '5 minutes'`
)

func lateBefore(kind domain.EffectKind) string {
	if kind == domain.EffectPublish {
		return lateEvents
	}
	return lateOthers
}

func olderThan(f Filter) string {
	if f.OlderThan <= 0 {
		return ``
	}
	return ` AND o.created_at <= statement_timestamp() - @older_than::interval`
}

func ofBooking(f Filter, after cursor) string {
	where := ` WHERE o.booking_id = @booking AND (@kind = '' OR o.kind = @kind) AND (@status = '' OR o.status = @status)` + olderThan(f)
	if f.Stuck {
		where += ` AND (o.status IN ('in_doubt', 'parked') OR o.status = 'pending' AND (` + late + ` OR NOT ` + carried + `))`
	}
	if after.ID != (domain.EffectID{}) {
		where += ` AND o.id > @after_id::uuid`
	}
	return `SELECT ` + effectColumns + ` FROM outbox o` + where + ` ORDER BY o.id LIMIT @limit`
}

func finished(f Filter, after cursor) string {
	where := fmt.Sprintf(` WHERE o.status = '%s' AND NOT @stuck AND (@kind = '' OR o.kind = @kind)`, f.Status) + olderThan(f)
	if after.ID != (domain.EffectID{}) {
		where += ` AND o.id < @after_id::uuid`
	}
	return `SELECT ` + effectColumns + ` FROM outbox o` + where + ` ORDER BY o.id DESC LIMIT @limit`
}
