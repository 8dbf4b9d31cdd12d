package main

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"holdfast/payments"
)

// readings counts how the reads of the provider end. A doubt that could not be looked at stays a doubt, as does one
// that the look has not ended; only the counts tell the two apart.
type readings struct {
	payments.Gateway
	answered, unanswered atomic.Int64
}

// none tells whether reads were made and not one was answered.
func (r *readings) none() bool { return r.unanswered.Load() > 0 && r.answered.Load() == 0 }

func (r *readings) count(err error) {
	if err != nil && !errors.Is(err, payments.ErrNoIntent) { // that is an answer
		r.unanswered.Add(1)
		return
	}
	r.answered.Add(1)
}

// Intent reads one intent.
func (r *readings) Intent(ctx context.Context, id string) (payments.Intent, error) {
	intent, err := r.Gateway.Intent(ctx, id)
	r.count(err)
	return intent, err
}

// Charges lists the charges of an intent.
func (r *readings) Charges(ctx context.Context, intentID string) ([]payments.ProviderCharge, error) {
	charges, err := r.Gateway.Charges(ctx, intentID)
	r.count(err)
	return charges, err
}

// Events reads a page of the list of events.
func (r *readings) Events(ctx context.Context, types []string, from, to time.Time, after string) ([]payments.Event, bool, error) {
	page, more, err := r.Gateway.Events(ctx, types, from, to, after)
	r.count(err)
	return page, more, err
}

// IntentsCreated lists intents by the time of their creation.
func (r *readings) IntentsCreated(ctx context.Context, from, to time.Time) ([]payments.Intent, error) {
	intents, err := r.Gateway.IntentsCreated(ctx, from, to)
	r.count(err)
	return intents, err
}

// EachTransaction lists balance transactions by the time of their creation.
func (r *readings) EachTransaction(ctx context.Context, from, to time.Time, each func([]payments.Transaction) error) error {
	err := r.Gateway.EachTransaction(ctx, from, to, each)
	r.count(err)
	return err
}

// ChargeTransactions lists the balance transactions of an intent's charges.
func (r *readings) ChargeTransactions(ctx context.Context, intentID string) ([]payments.Transaction, error) {
	listed, err := r.Gateway.ChargeTransactions(ctx, intentID)
	r.count(err)
	return listed, err
}
