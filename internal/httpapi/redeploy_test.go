package httpapi_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/payments"
	"holdfast/payments/stripesim"
)

// otherBuild is a deployment whose settings would put a description and more metadata into what it sends.
type otherBuild struct{ payments.Gateway }

func (o otherBuild) Freeze(op domain.Operation, c payments.Charge) payments.Params {
	p := o.Gateway.Freeze(op, c)
	if op == domain.OpCreate {
		p["description"], p["metadata[plan]"] = "Booking of a court", "new"
	}
	return p
}

// G3: between two sends of a key another build is deployed, forth or back. Expected: every send of a key has the
// parameters of its first; the provider never sees a mismatch; one charge.
func TestIncident13_ARedeployBetweenSendsChangesNoParameter(t *testing.T) {
	t.Parallel()
	for _, back := range []bool{false, true} {
		for _, operation := range []string{"create", "confirm"} {
			for _, fault := range []string{"error_503", "error_503_after", "in_use_409"} {
				t.Run(fmt.Sprintf("back %t, %s, %s", back, operation, fault), func(t *testing.T) {
					t.Parallel()
					b := setup(t)
					p := newProvider(t, b)
					before, after := p.worker(b.db.Pool, p.gateway), p.worker(b.db.Pool, otherBuild{p.gateway})
					if back {
						before, after = after, before
					}
					made := b.book(t, "one", b.body())
					require.Equal(t, http.StatusCreated, made.status, "%s", made.body)
					id := bookingOf(t, made)
					p.sim.AddFault(stripesim.Fault{Operation: "payment_intents." + operation, Fault: fault})
					require.NoError(t, p.run(t.Context(), before, id, domain.EffectCharge, 1))
					require.Equal(t, 0, b.count(t, `SELECT count(*) FROM bookings WHERE status = 'confirmed'`), "it was cut short")
					require.NoError(t, p.run(t.Context(), after, id, domain.EffectCharge, 20))

					require.Equal(t, 1, b.count(t, `SELECT count(*) FROM bookings WHERE status = 'confirmed'`))
					sends := map[string][]stripesim.JournalEntry{}
					for _, e := range p.sim.Journal(0) {
						if e.IdempotencyKey != "" {
							sends[e.IdempotencyKey] = append(sends[e.IdempotencyKey], e)
						}
					}
					repeated := 0
					for key, of := range sends {
						repeated += len(of) - 1
						for _, e := range of {
							require.NotEqual(t, http.StatusBadRequest, e.Status, key)
							require.Equal(t, of[0].ParamsSHA256, e.ParamsSHA256, key)
						}
					}
					require.Equal(t, 1, repeated, "one key was sent twice: %v", sends)
					ledger := p.sim.Ledger()
					require.NoError(t, ledger.Check())
					require.Len(t, ledger.Succeeded(id.String()), 1)
				})
			}
		}
	}
}
