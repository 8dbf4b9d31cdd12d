package console_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/internal/console"
	"holdfast/internal/operator"
	"holdfast/outbox"
)

// failing is the desk, of which every act fails.
type failing struct {
	console.Desk

	err error
}

func (d failing) Do(context.Context, operator.Order) (operator.Result, error) {
	return operator.Result{}, d.err
}

// What an act needs and cannot reach is told as that, and is no fault of ours; a name that begins a sentence stays whole.
func TestActFails(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err    error
		status int
		says   string
	}{
		"broker":          {fmt.Errorf("%w: %w", operator.ErrBroker, errors.New("no responders")), http.StatusServiceUnavailable, "The broker did not take it"},
		"broker, in time": {fmt.Errorf("%w: %w", operator.ErrBroker, context.DeadlineExceeded), http.StatusServiceUnavailable, "The broker did not take it"},
		"a name":          {&outbox.RefusedError{Reason: "élodie replayed it"}, http.StatusConflict, "Élodie replayed it."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, func(config *console.Config) { config.Desk = failing{config.Desk, c.err} })
			v := b.signedIn(b.operator)
			a := v.post("/effects/"+domain.NewID[domain.EffectID]().String()+"/republish", append(v.fields("/"), "reason", "the stream has lost it")...)
			require.Equal(t, c.status, a.status, a.body)
			require.Contains(t, a.body, c.says)
		})
	}
}

// Where what the provider has told is parked, the overview does not say that there is nothing to do.
func TestOverview_ParkedReceipts(t *testing.T) {
	t.Parallel()
	b := setup(t)
	v := b.signedIn(b.operator)
	require.Contains(t, v.get("/").body, "There is nothing to do here.")
	b.exec(`
		INSERT INTO provider_events (id, type, livemode, object_type, object_id, intent_id, booking_id, payment_id, request_key, created_at, via, status, finished_at)
		VALUES ('evt_1', 'charge.succeeded', false, 'charge', 'ch_1', 'pi_1', '', '', '', now(), 'webhook', 'parked', now())`)
	a := v.get("/")
	require.Contains(t, a.body, "1 webhook is parked or late")
	require.NotContains(t, a.body, "nothing to do")
}

// What is open is found, however much has come after it.
func TestOldRequestsAndRunsAreFound(t *testing.T) {
	t.Parallel()
	b := setup(t)
	request, run := uuid.New(), uuid.New()
	booking, _ := b.book()
	b.exec(`
		INSERT INTO operator_requests (id, act, booking_id, asked, category, amount, currency, seen, actor, reason, created_at, expires_at)
		SELECT CASE n WHEN 0 THEN $1 ELSE gen_random_uuid() END, 'refund', $2, 0, '', 99, 'EUR', 'booking', 'Ada', 'it rained', now() - interval '1 hour' + n * interval '1 second', now() + interval '1 hour'
		  FROM generate_series(0, 200) AS n`, request, booking)
	b.exec(`
		INSERT INTO operator_runs (id, act, filter, cap, actor, reason, total, more, started_at)
		SELECT CASE n WHEN 0 THEN $1 ELSE gen_random_uuid() END, 'replay', '{}', 1, 'Ada', 'it rained', 0, false, now() - interval '1 hour' + n * interval '1 second'
		  FROM generate_series(0, 200) AS n`, run)
	v := b.signedIn(b.operator)
	require.Equal(t, http.StatusOK, v.get("/requests/"+request.String()).status)
	require.Equal(t, http.StatusOK, v.get("/runs/"+run.String()).status)
	require.Equal(t, http.StatusNotFound, v.get("/requests/"+run.String()).status)
	require.Equal(t, http.StatusNotFound, v.get("/runs/"+request.String()).status)
}
