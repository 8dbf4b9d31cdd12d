package stripe

import (
	"encoding/json"
	"maps"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/payments"
	"holdfast/payments/stripesim"
)

// TestIncident13_WhatIsFrozenIsSent, and not what this build would freeze: parameters that another build has stored, with a
// description and metadata that this one does not know, go out in the same bytes; what is frozen anew is a mismatch (G3).
func TestIncident13_WhatIsFrozenIsSent(t *testing.T) {
	t.Parallel()
	sim, err := stripesim.Start(t.Context(), "127.0.0.1:0", stripesim.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, sim.Close()) })
	g := gatewayTo(t, sim.URL)
	other := maps.Clone(g.Freeze(domain.OpCreate, frozenCharge()))
	other["description"], other["metadata[plan]"], other["statement_descriptor_suffix"] = "Café & 10 % + more", "old=1&x", "COURT"
	call := payments.Call{Operation: domain.OpCreate, Key: "hf:payment:create:1", Params: other}
	first := g.Send(t.Context(), call)
	require.Equal(t, payments.Executed, first.Class, first.Detail)

	stored, err := json.Marshal(call.Params)
	require.NoError(t, err)
	call.Params = nil
	require.NoError(t, json.Unmarshal(stored, &call.Params))
	again := gatewayTo(t, sim.URL).Send(t.Context(), call)
	require.Equal(t, payments.Executed, again.Class, again.Detail)
	require.True(t, again.Replayed)

	call.Params = g.Freeze(domain.OpCreate, frozenCharge())
	require.Equal(t, payments.KeyMismatch, g.Send(t.Context(), call).Class, "this is what must not happen")
	sends := sim.Journal(0)
	require.Equal(t, sends[0].ParamsSHA256, sends[1].ParamsSHA256)
	require.Len(t, sim.Ledger().Executions, 1)

	p := newProvider(t, says(200, wholeIntent))
	for range 2 {
		call.Params = nil
		require.NoError(t, json.Unmarshal(stored, &call.Params))
		gatewayTo(t, p.URL).Send(t.Context(), call)
	}
	require.Equal(t, p.requests()[0].body, p.requests()[1].body, "byte for byte")
	require.Contains(t, p.requests()[0].body, "description=Caf%C3%A9+%26+10+%25+%2B+more")
}
