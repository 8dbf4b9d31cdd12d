package httpapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"holdfast/internal/httpapi"
	"holdfast/internal/operator"
)

// longRun is a desk with one run of 2,500 effects, which gives out at most 1,000 of them at a time.
type longRun struct{ emptyDesk }

func (longRun) Run(context.Context, uuid.UUID) (operator.Run, error) {
	return operator.Run{Act: operator.Replay, Total: 2500, Left: 2500}, nil
}

func (longRun) RunItems(_ context.Context, _ uuid.UUID, from, limit int) (items []operator.RunItem, _ error) {
	for at := max(from, 1); at <= 2500 && len(items) < min(limit, 1000); at++ {
		items = append(items, operator.RunItem{Position: at, Status: "waiting"})
	}
	return items, nil
}

// Whatever the size of a page, the pages of a run end where the run does.
func TestDesk_PagesOfARun(t *testing.T) {
	t.Parallel()
	b := faked(t, fakes{}, func(c *httpapi.Config) { c.Operators = longRun{} })
	for _, limit := range []int{500, 999, 1000} {
		from, seen := 0, 0
		for {
			a := b.get(t, fmt.Sprintf("/v1/ops/runs/%s/items?from=%d&limit=%d", someID, from, limit))
			require.Equal(t, http.StatusOK, a.status, "%s", a.body)
			var page httpapi.RunItems
			require.NoError(t, json.Unmarshal(a.body, &page))
			require.LessOrEqual(t, len(page.Items), limit)
			for _, item := range page.Items {
				seen++
				require.Equal(t, seen, item.Position)
			}
			if page.Next == nil {
				break
			}
			from = *page.Next
		}
		require.Equal(t, 2500, seen, "pages of %d", limit)
	}
}
