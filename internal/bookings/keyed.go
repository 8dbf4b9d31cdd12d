package bookings

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"holdfast/domain"
	"holdfast/internal/postgres"
)

// Keyed is a request about a booking that exists, decided once for its (client, route, key).
type Keyed struct {
	Client  domain.ClientID
	Route   string // the route's template with its path ids filled in
	Key     string
	Meaning any // marshalled, it is what the request means and nothing of how it was written; its hash is the fingerprint
}

// Decided is what a keyed request has led to, to be stored and replayed byte for byte.
type Decided struct {
	Status   int
	Body     []byte // never anything secret
	Location string
	Booking  domain.BookingID // whose life the key shares
}

// keyedVersion is the version of the fingerprints of all keyed requests but the accepting one.
const keyedVersion = 1

// Once runs decide in the transaction that claims the key and stores what was decided: all of it is committed, or
// nothing. It runs decide again if the database was busy or nobody knows whether COMMIT was carried out (G1); what was
// committed by then is found under the key, and decide is not called. An error of decide leaves the key free.
//
// Its answers and errors are those of Accept.
func (s *Service) Once(ctx context.Context, k Keyed, decide func(ctx context.Context, tx pgx.Tx) (Decided, error)) (Response, error) {
	text, err := json.Marshal(k.Meaning)
	if err != nil {
		return Response{}, fmt.Errorf("marshal a request: %w", err)
	}
	sum := sha256.Sum256(text)
	d, err := s.within(ctx, func(ctx context.Context) (decision, error) {
		d, err := s.once(ctx, k, sum[:], decide)
		if err != nil {
			return decision{}, err
		}
		return d, nil
	})
	if err != nil {
		return Response{}, err
	}
	return d.answer(func(version int16) ([]byte, error) {
		if version != keyedVersion {
			return nil, errors.New("a newer build has answered this key")
		}
		return sum[:], nil
	})
}

func (s *Service) once(
	ctx context.Context, k Keyed, fingerprint []byte, decide func(ctx context.Context, tx pgx.Tx) (Decided, error),
) (decision, error) {
	var d decision
	err := postgres.InTx(ctx, s.pool, func(tx pgx.Tx) error {
		claimed, err := tx.Exec(ctx, `
			INSERT INTO idempotency_keys (client_id, method, route, key, fingerprint, fingerprint_version, created_at, response_expires_at)
			VALUES ($1, 'POST', $2, $3, $4, $5, clock_timestamp(), clock_timestamp() + $6::interval)
			ON CONFLICT ON CONSTRAINT idempotency_keys_pkey DO NOTHING`,
			k.Client, k.Route, k.Key, fingerprint, keyedVersion, s.config.Retention)
		if postgres.IsLockTimeout(err) { // a twin has not decided yet
			return ErrInProgress
		}
		if err != nil {
			return fmt.Errorf("claim a key: %w", err)
		}
		if claimed.RowsAffected() == 1 {
			made, err := decide(ctx, tx)
			if err != nil {
				return err
			}
			_, err = tx.Exec(ctx, `
				UPDATE idempotency_keys SET booking_id = $4, response_status = $5, response_body = $6, response_location = nullif($7, '')
				 WHERE client_id = $1 AND method = 'POST' AND route = $2 AND key = $3`,
				k.Client, k.Route, k.Key, made.Booking, made.Status, string(made.Body), made.Location)
			if err != nil {
				return fmt.Errorf("store an answer: %w", err)
			}
		}
		d, err = stored(ctx, tx, k)
		if claimed.RowsAffected() == 1 {
			d.Outcome = "created"
		}
		return err
	})
	return d, err
}

// stored reads what was decided under a key.
func stored(ctx context.Context, tx pgx.Tx, k Keyed) (decision, error) {
	rows, err := tx.Query(ctx, `
		SELECT 'existing' AS outcome, response_status AS status, response_body AS body, response_location AS location,
		       fingerprint, fingerprint_version, response_expires_at AS expires_at, response_expires_at <= clock_timestamp() AS expired
		  FROM idempotency_keys
		 WHERE client_id = $1 AND method = 'POST' AND route = $2 AND key = $3`, k.Client, k.Route, k.Key)
	if err != nil {
		return decision{}, fmt.Errorf("read a key: %w", err)
	}
	d, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[decision])
	if err != nil {
		return decision{}, fmt.Errorf("read a key: %w", err)
	}
	return d, nil
}
