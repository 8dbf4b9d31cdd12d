//go:build contract

package stripe

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/payments"
	"holdfast/payments/paymentstest"
)

// TestContract runs the suite against Stripe's own test mode, to find where Stripe has moved away from the simulator:
//
//	STRIPE_TEST_KEY=sk_test_… go test -tags contract -run TestContract ./payments/stripe
func TestContract(t *testing.T) {
	t.Parallel()
	key := os.Getenv("STRIPE_TEST_KEY") //nolint:forbidigo // a test that nobody configures by accident
	if !strings.HasPrefix(key, "sk_test_") {
		t.Fatal("STRIPE_TEST_KEY: want a key of the test mode, sk_test_…")
	}
	paymentstest.Conformance(t, func(t *testing.T) paymentstest.Bench {
		t.Helper()
		return paymentstest.Bench{New: func(t *testing.T) payments.Gateway {
			t.Helper()
			g, err := New(Config{APIKey: domain.Secret(key)})
			require.NoError(t, err)
			return g
		}}
	})
}
