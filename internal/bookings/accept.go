package bookings

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast/domain"
	"holdfast/internal/postgres"
)

// bookingsRoute is the route template under which keys of this call are kept, and the prefix of a booking's Location.
const bookingsRoute = "/v1/bookings"

// Accept decides a booking request once for its (client, key), whatever happens in between: concurrent twins, a lost
// response, a lost COMMIT reply, an expired answer (G1).
//
// It returns the committed decision, or an error:
//   - *domain.ValidationError, domain.ErrNotFound (the resource): nothing was written, the key stays free;
//   - ErrKeyReused, *KeyExpiredError: the key belongs to an earlier request;
//   - ErrInProgress, domain.ErrBusy: not decided, or decided and not learned; the same request may be sent again.
func (s *Service) Accept(ctx context.Context, client domain.ClientID, key string, r Request) (Response, error) {
	if r = r.normalise(); !r.End.After(r.Start) {
		return Response{}, &domain.ValidationError{Field: "end", Reason: "must be later than start: a booking has a length"}
	}
	sum, err := fingerprint(fingerprintVersion, r)
	if err != nil {
		return Response{}, err
	}
	c := claim{
		client: client, key: key, request: r, fingerprint: sum,
		// One set of ids for all tries of this request: the claim decides which of them counts.
		booking: domain.NewID[domain.BookingID](), payment: domain.NewID[domain.PaymentID](),
		charge: domain.NewID[domain.EffectID](), event: domain.NewID[domain.EffectID](),
	}
	d, err := s.within(ctx, func(ctx context.Context) (decision, error) { return s.claim(ctx, c) })
	if err != nil {
		return Response{}, err
	}
	if d.Outcome == "created" {
		s.waker.Wake(domain.EffectCharge)
	}
	return d.answer(func(version int16) ([]byte, error) { return fingerprint(version, r) })
}

// within runs a claim until it is decided or the request's budget is spent. Running it again is always right: if an
// earlier try did commit, also one whose reply was lost or which is committing still, the claim finds its row or waits
// for it.
func (s *Service) within(ctx context.Context, claim func(context.Context) (decision, error)) (decision, error) {
	ctx, cancel := context.WithTimeout(ctx, s.config.Budget)
	defer cancel()
	for try := 0; ; try++ {
		d, err := claim(ctx)
		switch {
		case err == nil:
			return d, nil
		case ctx.Err() == nil && (postgres.IsTransient(err) || postgres.IsUnavailable(err)):
			if wait(ctx, try) != nil {
				return decision{}, fmt.Errorf("%w: %w", domain.ErrBusy, err)
			}
		case postgres.IsTransient(err), postgres.IsUnavailable(err), ctx.Err() != nil:
			return decision{}, fmt.Errorf("%w: %w", domain.ErrBusy, err)
		default:
			return decision{}, err
		}
	}
}

// wait backs off before a retry, with jitter so that rivals do not meet again.
func wait(ctx context.Context, try int) error {
	base := 5 * time.Millisecond << min(try, 6)
	timer := time.NewTimer(base + rand.N(base)) //nolint:gosec // jitter needs no cryptography
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// answer says what a decision means to the request; fingerprint is the request's own, under a version.
func (d decision) answer(fingerprint func(version int16) ([]byte, error)) (Response, error) {
	response := Response{Status: int(d.Status), Location: d.location(), KeyExpires: d.ExpiresAt.UTC()}
	if d.Body != nil {
		response.Body = []byte(*d.Body)
	}
	switch d.Outcome {
	case "created", "refused":
		return response, nil
	case "in_progress":
		return Response{}, ErrInProgress
	case "existing":
		ours, err := fingerprint(d.FingerprintVersion)
		if err != nil {
			return Response{}, fmt.Errorf("%w: %w", domain.ErrBusy, err) // a newer build answers it; this one cannot tell
		}
		if subtle.ConstantTimeCompare(ours, d.Fingerprint) != 1 {
			return Response{}, ErrKeyReused
		}
		if d.Expired || d.Body == nil {
			return Response{}, &KeyExpiredError{Location: d.location()}
		}
		response.Replayed = true
		return response, nil
	default:
		return Response{}, fmt.Errorf("accept_booking answered %q", d.Outcome)
	}
}

type claim struct {
	client      domain.ClientID
	key         string
	request     Request
	fingerprint []byte
	booking     domain.BookingID
	payment     domain.PaymentID
	charge      domain.EffectID
	event       domain.EffectID
}

type decision struct {
	Outcome            string
	Status             int16
	Body               *string
	Location           *string
	Fingerprint        []byte
	FingerprintVersion int16
	ExpiresAt          time.Time
	Expired            bool
}

func (d decision) location() string {
	if d.Location == nil {
		return ""
	}
	return *d.Location
}

// claim is the one transaction: a single statement that commits by itself. The pool prepares it once per connection.
func (s *Service) claim(ctx context.Context, c claim) (decision, error) {
	var expectedAmount *int64
	var expectedCurrency *string
	if c.request.Expected != nil {
		expectedAmount, expectedCurrency = &c.request.Expected.Amount, &c.request.Expected.Currency
	}
	rows, err := s.pool.Query(ctx, `
		SELECT outcome, status, body, location, fingerprint, fingerprint_version, expires_at, expired
		  FROM accept_booking($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20)`,
		c.client.UUID, bookingsRoute, c.key, c.fingerprint, int16(fingerprintVersion), s.config.Retention,
		c.booking.UUID, c.payment.UUID, c.charge.UUID, c.event.UUID,
		c.request.ResourceID.UUID, c.request.Start, c.request.End, c.request.Quantity,
		expectedAmount, expectedCurrency,
		c.request.CustomerName, c.request.CustomerEmail, c.request.PaymentMethod, c.request.Metadata)
	if err != nil {
		return decision{}, fmt.Errorf("accept a booking: %w", err)
	}
	d, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[decision])
	if raised, ok := postgres.AsRaised(err); ok {
		return decision{}, refusal(raised)
	}
	if err != nil {
		return decision{}, fmt.Errorf("accept a booking: %w", err)
	}
	return d, nil
}

// refusal turns what the function raised into the error it means. Nothing was written.
func refusal(r postgres.Raised) error {
	switch r.Code {
	case "HF404":
		return domain.ErrNotFound
	case "HF422":
		return &domain.ValidationError{Field: r.Column, Reason: r.Message, Code: r.Hint}
	default:
		return errors.New("accept_booking raised " + r.Code + ": " + r.Message)
	}
}
