package bookings_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/bookings"
	"holdfast/internal/testdb"
)

// Incident 01 (G1): the claim's reply is lost, after its commit or before it arrived. The claim is run again on a fresh
// connection inside the same request. Expected in both: the one booking, told as such.
func TestIncident01_LostReply(t *testing.T) {
	t.Parallel()
	for name, cut := range map[string]testdb.Cut{"after the commit": testdb.LoseReply, "before it arrived": testdb.LoseIt} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			r := request(b.resource(1), 0)
			proxy := testdb.NewCutter(t, b.db)
			service := bookings.New(b.open(proxy.URL), b, bookings.Config{Budget: time.Minute})
			_, err := service.Accept(b.ctx, b.client, "warm", request(r.ResourceID, 10)) // the statement is prepared now
			require.NoError(t, err)
			var cuts atomic.Int32
			proxy.Judge(func(m testdb.Message) testdb.Cut {
				if m.Type == 'B' && cuts.CompareAndSwap(0, 1) {
					return cut
				}
				return testdb.Pass
			})
			first, err := service.Accept(b.ctx, b.client, "key", r)
			require.NoError(t, err)
			require.Equal(t, 201, first.Status)
			require.Equal(t, cut == testdb.LoseReply, first.Replayed, "the second try finds what the first has committed")
			require.Equal(t, int32(1), cuts.Load())
			require.Equal(t, each(2, 0), b.rows())
			again, err := service.Accept(b.ctx, b.client, "key", r)
			require.NoError(t, err)
			require.Equal(t, string(first.Body), string(again.Body))
		})
	}
}
