package bookings

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"time"

	"holdfast/domain"
)

// fingerprintVersion is raised whenever normalisation changes. Older versions stay computable, so that a deploy never
// turns a replay into a mismatch.
const fingerprintVersion = 1

// canonical is what a request means, and nothing of how it was written: instants in UTC, defaults filled in. Members
// are marshalled in this order, maps by sorted key. Never reorder or rename: that is a new version.
type canonical struct {
	Resource      domain.ResourceID `json:"resource_id"`
	Start         domain.Instant    `json:"start"`
	End           domain.Instant    `json:"end"`
	Quantity      int               `json:"quantity"`
	Expected      *domain.Money     `json:"expected_total,omitempty"`
	CustomerName  string            `json:"customer_name"`
	CustomerEmail string            `json:"customer_email"`
	PaymentMethod string            `json:"payment_method"`
	Metadata      map[string]string `json:"metadata,omitempty"`
}

// fingerprint hashes the meaning of a request under one version of the normalisation.
func fingerprint(version int16, r Request) ([]byte, error) {
	if version != fingerprintVersion {
		return nil, fmt.Errorf("fingerprint version %d is not known to this build", version)
	}
	text, err := json.Marshal(canonical{
		Resource: r.ResourceID, Start: domain.Instant(r.Start), End: domain.Instant(r.End), Quantity: r.Quantity,
		Expected: r.Expected, CustomerName: r.CustomerName, CustomerEmail: r.CustomerEmail,
		PaymentMethod: r.PaymentMethod, Metadata: r.Metadata,
	})
	if err != nil {
		return nil, fmt.Errorf("marshal the request: %w", err)
	}
	sum := sha256.Sum256(text)
	return sum[:], nil
}

// normalise fills in defaults and puts instants into UTC at PostgreSQL's precision.
func (r Request) normalise() Request {
	r.Start, r.End = r.Start.UTC().Truncate(time.Microsecond), r.End.UTC().Truncate(time.Microsecond)
	if r.Quantity == 0 {
		r.Quantity = 1
	}
	if r.Metadata == nil {
		r.Metadata = map[string]string{}
	}
	return r
}
