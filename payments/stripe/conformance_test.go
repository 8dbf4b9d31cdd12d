package stripe

import (
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/payments"
	"holdfast/payments/paymentstest"
	"holdfast/payments/stripesim"
)

// TestConformance proves, for every operation and every fault, that what the gateway says agrees with the provider's own
// ledger (G3, G4).
func TestConformance(t *testing.T) {
	t.Parallel()
	paymentstest.Conformance(t, func(t *testing.T) paymentstest.Bench {
		t.Helper()
		server, err := stripesim.Start(t.Context(), "127.0.0.1:0", stripesim.Config{})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, server.Close()) })
		return paymentstest.Bench{
			New: func(t *testing.T) payments.Gateway {
				t.Helper()
				g, err := New(Config{APIKey: "sk_test_conformance", BaseURL: server.URL})
				require.NoError(t, err)
				hurry(t, g)
				return g
			},
			Sim: server,
		}
	})
}
