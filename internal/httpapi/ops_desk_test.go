package httpapi_test

import (
	"encoding/json"
	"net/http"
	"path"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/internal/clients"
	"holdfast/internal/httpapi"
	"holdfast/internal/operator"
)

// parked is a booking whose charge waits for a person, and an operator who looks at it.
func parked(t *testing.T) (b *bed, booking string, charge domain.EffectID) {
	t.Helper()
	b = setup(t)
	made := b.book(t, "one", b.body())
	require.Equal(t, http.StatusCreated, made.status, "%s", made.body)
	booking = path.Base(made.header.Get("Location"))
	require.NoError(t, b.db.Pool.QueryRow(t.Context(), `
		UPDATE outbox SET status = 'parked', attempts = 6, last_error = 'the provider answers 401' WHERE kind = 'charge' RETURNING id`).Scan(&charge))
	b.exec(t, `UPDATE outbox SET created_at = now() + interval '1 hour' WHERE kind = 'publish'`) // it has no job, and is missed after 15 s
	b.token = b.newToken(t, "ada", clients.Operator)
	return b, booking, charge
}

// act does an act under a key.
func (b *bed) act(t *testing.T, what, key, body string, on domain.EffectID) answer {
	t.Helper()
	return b.send(t, http.MethodPost, "/v1/ops/effects/"+on.String()+"/"+what, strings.NewReader(body), b.bearer(), asJSON, "Idempotency-Key: "+key)
}

func read[T any](t *testing.T, a answer) (v T) {
	t.Helper()
	require.Equal(t, http.StatusOK, a.status, "%s", a.body)
	require.NoError(t, json.Unmarshal(a.body, &v))
	return v
}

// From the alarm to the replay by HTTP alone (G7): what is stuck, why, what a replay would do; then it is done once for its key,
// with one row of the audit that names the client, and the answer is replayed byte for byte.
func TestDesk_Replay(t *testing.T) {
	t.Parallel()
	b, booking, charge := parked(t)
	page := read[operator.Page](t, b.get(t, "/v1/ops/effects?stuck=true"))
	require.Len(t, page.Rows, 1)
	require.Equal(t, []any{charge, 6, domain.Money{Amount: 2500, Currency: "EUR"}}, []any{page.Rows[0].ID, page.Rows[0].Attempts, *page.Rows[0].AtStake})
	require.Len(t, read[operator.Page](t, b.get(t, "/v1/ops/effects?booking_id="+booking+"&status=pending")).Rows, 1, "its event")
	require.Empty(t, read[operator.Page](t, b.get(t, "/v1/ops/effects?older_than=1h")).Rows)
	require.Positive(t, read[operator.Overview](t, b.get(t, "/v1/ops/overview")).Stuck)
	require.Equal(t, charge, read[operator.Shown](t, b.get(t, "/v1/ops/effects/"+booking)).Effect.ID, "a booking's id shows its charge")
	require.NotEmpty(t, read[operator.Timeline](t, b.get(t, "/v1/ops/bookings/"+booking+"/timeline")).Entries)
	preview := read[operator.Preview](t, b.get(t, "/v1/ops/effects/"+charge.String()+"/preview?act=replay"))
	require.True(t, preview.Allowed)
	require.Contains(t, preview.Unread, "STRIPE_API_KEY", "the provider was not asked, and that is told")
	require.Zero(t, b.count(t, `SELECT count(*) FROM operator_actions`), "looking leaves nothing")

	body := `{"reason":"the key is valid again","seen":"` + preview.Seen + `"}`
	first := b.act(t, "replay", "once", body, charge)
	done := read[operator.Result](t, first)
	require.Equal(t, []any{domain.EffectParked, domain.EffectPending, 6, 0}, []any{done.Before.Status, done.After.Status, done.Before.Attempts, done.After.Attempts})
	again := b.act(t, "replay", "once", body, charge)
	require.Equal(t, string(first.body), string(again.body))
	require.Equal(t, "true", again.header.Get("Idempotency-Replayed"))
	b.act(t, "replay", "once", `{"reason":"another reason"}`, charge).refused(t, http.StatusUnprocessableEntity, httpapi.CodeKeyReused)
	require.Equal(t, 1, b.count(t, `SELECT count(*) FROM operator_actions WHERE action = 'replay' AND actor = 'ada' AND reason = 'the key is valid again' AND effect_id = $1`, charge))

	second := b.act(t, "replay", "with-an-old-preview", body, charge)
	p := second.refused(t, http.StatusConflict, httpapi.CodeEffectChanged)
	require.Equal(t, "ada", p.By, "who was first is told")
	require.NotNil(t, p.At)
	require.Equal(t, string(second.body), string(b.act(t, "replay", "with-an-old-preview", body, charge).body))
	require.Equal(t, 1, b.count(t, `SELECT count(*) FROM operator_actions`))

	actions := read[operator.AuditPage](t, b.get(t, "/v1/ops/actions?booking_id="+booking+"&actor=ada&action=replay"))
	require.Len(t, actions.Actions, 1)
	require.Equal(t, done.ActionID, actions.Actions[0].ID)
	require.Empty(t, read[operator.AuditPage](t, b.get(t, "/v1/ops/actions?actor=grace")).Actions)
}

// Two people with the same preview (G7): one does it, the other is told who did.
func TestDesk_TwoAtOnce(t *testing.T) {
	t.Parallel()
	b, _, charge := parked(t)
	seen := read[operator.Preview](t, b.get(t, "/v1/ops/effects/"+charge.String()+"/preview?act=replay")).Seen
	grace := *b
	grace.token = b.newToken(t, "grace", clients.OperatorReplay)
	answers := make([]answer, 2)
	var both sync.WaitGroup
	for i, who := range []*bed{b, &grace} {
		both.Go(func() {
			for range 20 { // the wait for a lock is bounded: 503 is to be sent again
				answers[i] = who.act(t, "replay", "mine", `{"reason":"at once","seen":"`+seen+`"}`, charge)
				if answers[i].status != http.StatusServiceUnavailable {
					return
				}
			}
		})
	}
	both.Wait()
	names := []string{"ada", "grace"}
	if answers[0].status != http.StatusOK {
		answers[0], answers[1], names[0], names[1] = answers[1], answers[0], names[1], names[0]
	}
	read[operator.Result](t, answers[0])
	require.Equal(t, names[0], answers[1].refused(t, http.StatusConflict, httpapi.CodeEffectChanged).By)
	require.Equal(t, 1, b.count(t, `SELECT count(*) FROM operator_actions`))
}

// The switch by HTTP (G7): thrown, thrown again, thrown back; each change once in the audit.
func TestDesk_Pause(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.token = b.newToken(t, "ada", clients.OperatorPause)
	put := func(body string) operator.PauseResult {
		return read[operator.PauseResult](t, b.send(t, http.MethodPut, "/v1/ops/pauses/charge", strings.NewReader(body), b.bearer(), asJSON))
	}
	for range 2 {
		require.True(t, put(`{"paused":true,"reason":"a wave of fraud"}`).Paused)
	}
	listed := read[httpapi.Pauses](t, b.get(t, "/v1/ops/pauses")).Pauses
	require.Len(t, listed, 1)
	require.Equal(t, "a wave of fraud", listed[0].Reason)
	for range 2 {
		require.False(t, put(`{"paused":false,"reason":"it is over"}`).Paused)
	}
	require.Empty(t, read[httpapi.Pauses](t, b.get(t, "/v1/ops/pauses")).Pauses)
	require.Equal(t, 2, b.count(t, `SELECT count(*) FROM operator_actions WHERE actor = 'ada'`))
}

// What does not exist is 404, and a page's end that nobody has given out is told, not answered with the first page.
func TestDesk_NothingThere(t *testing.T) {
	t.Parallel()
	b, _, charge := parked(t)
	unknown := domain.NewID[domain.EffectID]()
	for _, path := range []string{"/effects/" + unknown.String(), "/effects/" + unknown.String() + "/preview?act=replay", "/bookings/" + unknown.String() + "/timeline"} {
		b.get(t, "/v1/ops"+path).refused(t, http.StatusNotFound, httpapi.CodeNotFound)
	}
	b.act(t, "replay", uuid.NewString(), `{"reason":"why not"}`, unknown).refused(t, http.StatusNotFound, httpapi.CodeNotFound)
	for _, after := range []string{"x", "e30", strings.Repeat("A", 3000), charge.String(), "%F0%9F%98%80"} {
		for _, list := range []string{"/v1/ops/effects?after=", "/v1/ops/effects?stuck=true&after=", "/v1/ops/effects?status=done&after=", "/v1/ops/actions?after="} {
			status := b.get(t, list+after).status
			require.Contains(t, []int{http.StatusUnprocessableEntity, http.StatusOK}, status, "%s%s", list, after)
		}
	}
}
