package payments_test

import (
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/internal/postgres"
	"holdfast/internal/testdb"
	"holdfast/outbox"
	"holdfast/payments"
)

// Incident 01 for the money (G3, G6): each COMMIT of a charge in turn is passed on and its reply dropped, or is not passed
// on. There are three: record the create; commit the intent's id and record the confirm; settle. Expected: the worker that
// lost it sends nothing more under a record whose commit it does not know; whoever carries on ends confirmed with one
// charge, one confirm key and each event once.
func TestIncident01_EachCommitOfACharge(t *testing.T) {
	t.Parallel()
	sentBefore := map[int]int{1: 0, 2: 1, 3: 2} // what the provider has seen when the n-th commit is lost
	for nth := 1; nth <= 3; nth++ {
		for name, cut := range map[string]testdb.Cut{"reply lost": testdb.LoseReply, "commit lost": testdb.LoseIt} {
			t.Run(fmt.Sprint("commit ", nth, ", ", name), func(t *testing.T) {
				t.Parallel()
				b := setup(t)
				id := b.book("pm_card_visa")
				proxy := testdb.NewCutter(t, b.db)
				pool, err := postgres.Open(t.Context(), postgres.PoolConfig{URL: proxy.URL, ApplicationName: "cut"})
				require.NoError(t, err)
				t.Cleanup(pool.Close)
				var commits atomic.Int32
				proxy.Judge(func(m testdb.Message) testdb.Cut {
					if m.IsCommit() && int(commits.Add(1)) == nth {
						return cut
					}
					return testdb.Pass
				})
				worker := payments.New(pool, b.gateway, noWaker{}, b.config, slog.New(slog.DiscardHandler))
				_, err = worker.Charge(b.ctx, outbox.Job{Effect: b.effect(id, domain.EffectCharge)})
				var unknown *postgres.CommitError
				require.ErrorAs(t, err, &unknown)
				require.Len(t, b.sim.Journal(0), sentBefore[nth], "a send was made whose record may not exist")
				b.work(b.engine(), id, domain.EffectCharge)
				b.reconcile(b.engine(), id)
				b.agree(id)
				require.Equal(t, []string{"held", "confirmed"}, b.events(id))
			})
		}
	}
}
