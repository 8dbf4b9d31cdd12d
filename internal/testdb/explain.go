package testdb

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/internal/postgres"
)

// Plan is a step of what PostgreSQL has done for a statement, and of what it took from there.
type Plan struct {
	Type  string `json:"Node Type"`
	Table string `json:"Relation Name"`
	Rows  int    `json:"Actual Rows"`
	Hit   int    `json:"Shared Hit Blocks"`
	Read  int    `json:"Shared Read Blocks"`
	Below []Plan `json:"Plans"`
}

// Explain runs a statement and returns how that was done.
func Explain(tb testing.TB, q postgres.Querier, sql string, args ...any) Plan {
	tb.Helper()
	var text []byte
	require.NoError(tb, q.QueryRow(tb.Context(), `EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) `+sql, args...).Scan(&text))
	var plans []struct{ Plan Plan }
	require.NoError(tb, json.Unmarshal(text, &plans), string(text))
	return plans[0].Plan
}

// Buffers are those that were read, of all steps.
func (p Plan) Buffers() int { return p.Hit + p.Read }

// Walk shows each step, with the types of those above it and its own.
func (p Plan) Walk(see func(p Plan, path string)) { p.walk("", see) }

func (p Plan) walk(above string, see func(p Plan, path string)) {
	path := above + " > " + p.Type
	see(p, path)
	for _, below := range p.Below {
		below.walk(path, see)
	}
}
