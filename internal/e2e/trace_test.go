package e2e_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// lines are the log lines with this message of a service's only run.
func (s *service) lines(message string) (found []map[string]any) {
	s.bed.Helper()
	for text := range bytes.Lines([]byte(read(s.bed.T, s.log(1)))) {
		var line map[string]any
		if json.Unmarshal(text, &line) == nil && line["msg"] == message {
			found = append(found, line)
		}
	}
	return found
}

// Expected: a request's line has the trace id of its traceparent header, or else one of its own; a run's line names the
// booking and the effect and shares a trace id with the sends that it made, which is nobody else's.
func TestLinesOfOneRequestAndOfOneRunShareATrace(t *testing.T) {
	t.Parallel()
	b := newBed(t, nil)
	api, worker := b.start("api"), b.start("worker")
	ada := b.customer("ada", api.address)
	id := ada.book(t, "one", wish{resource: b.resource(1, time.Hour)})
	b.awaitStatus(soon, "confirmed", id)
	const trace = "4bf92f3577b34da6a3ce929d0e0e4736"
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, ada.url+"/v1/bookings/"+id, http.NoBody)
	require.NoError(t, err)
	request.Header.Set("Traceparent", "00-"+trace+"-00f067aa0ba902b7-01")
	_, err = ada.do(request)
	require.NoError(t, err)
	require.NoError(t, worker.stop())
	require.NoError(t, api.stop())

	traces := map[any]string{}
	for _, line := range api.lines("request") {
		require.Regexp(t, `^[0-9a-f]{32}$`, line["trace_id"])
		require.Empty(t, traces[line["trace_id"]], "one request, one trace")
		traces[line["trace_id"]], _ = line["route"].(string)
	}
	require.Equal(t, "GET /v1/bookings/{id}", traces[trace])
	var charge map[string]any
	for _, line := range worker.lines("job") {
		require.Regexp(t, `^[0-9a-f]{32}$`, line["trace_id"])
		require.Empty(t, traces[line["trace_id"]], "one run, one trace")
		traces[line["trace_id"]], _ = line["kind"].(string)
		require.Equal(t, id, line["booking_id"])
		require.NotEmpty(t, line["effect_id"])
		if line["kind"] == "charge" && charge == nil {
			charge = line
		}
	}
	require.NotNil(t, charge)
	sends := worker.lines("provider send")
	require.GreaterOrEqual(t, len(sends), 2)
	require.Equal(t, charge["trace_id"], sends[0]["trace_id"])
	for _, send := range sends {
		require.Equal(t, "charge", traces[send["trace_id"]])
	}
}
