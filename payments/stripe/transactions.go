package stripe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/google/uuid"
	sdk "github.com/stripe/stripe-go/v76"

	"holdfast/domain"
	"holdfast/payments"
)

// movement is Stripe's balance transaction. The SDK's own type is not used: it takes {} for one.
type movement struct {
	ID                string          `json:"id"`
	Object            string          `json:"object"`
	Type              string          `json:"type"`
	ReportingCategory string          `json:"reporting_category"`
	Amount            int64           `json:"amount"`
	Fee               int64           `json:"fee"`
	Net               int64           `json:"net"`
	Currency          string          `json:"currency"`
	ExchangeRate      json.Number     `json:"exchange_rate"`
	Created           int64           `json:"created"`
	AvailableOn       int64           `json:"available_on"`
	Source            json.RawMessage `json:"source"` // null, an id or, expanded, what moved the balance
}

// cause is what moved the balance, as far as all kinds of it are alike.
type cause struct {
	ID             string          `json:"id"`
	Object         string          `json:"object"`
	Amount         int64           `json:"amount"`
	AmountCaptured int64           `json:"amount_captured"`
	Currency       string          `json:"currency"`
	PaymentIntent  *string         `json:"payment_intent"`
	Metadata       json.RawMessage `json:"metadata"` // anybody may have written there
}

// EachTransaction lists the balance transactions created in [from, to), newest first, page by page.
func (g *Gateway) EachTransaction(ctx context.Context, from, to time.Time, each func([]payments.Transaction) error) error {
	filter := payments.Params{
		"created[gte]": fmt.Sprint(from.Unix()), "created[lt]": fmt.Sprint(to.Unix()), "expand[0]": "data.source",
	}
	return eachPage(ctx, g, "list balance transactions", transactionsPath, filter, func(m *movement) (string, payments.Transaction, error) {
		t, err := translateMovement(m, nil)
		if err == nil && (m.Created < from.Unix() || m.Created >= to.Unix()) {
			err = errors.New("the listing holds a balance transaction from outside its window")
		}
		return t.ID, t, err
	}, each)
}

// EachPayoutTransaction lists what went out with an automatic payout, page by page, without the payout itself.
func (g *Gateway) EachPayoutTransaction(ctx context.Context, payoutID string, each func([]payments.Transaction) error) error {
	act := "list a payout's transactions"
	if !idFits(payoutID) {
		return &ReadError{Act: act, Reason: "the payout's id is missing or malformed"}
	}
	filter := payments.Params{"payout": payoutID, "expand[0]": "data.source"}
	return eachPage(ctx, g, act, transactionsPath, filter, func(m *movement) (string, payments.Transaction, error) {
		t, err := translateMovement(m, nil)
		return t.ID, t, err
	}, func(page []payments.Transaction) error {
		return each(slices.DeleteFunc(page, func(t payments.Transaction) bool { return t.SourceID == payoutID && t.Category == "payout" }))
	})
}

// payout is Stripe's payout.
type payout struct {
	sdk.APIResource

	ID          string `json:"id"`
	Object      string `json:"object"`
	Amount      int64  `json:"amount"`
	Currency    string `json:"currency"`
	Status      string `json:"status"`
	Automatic   *bool  `json:"automatic"`
	ArrivalDate int64  `json:"arrival_date"`
	Created     int64  `json:"created"`
}

// Payout reads one payout.
func (g *Gateway) Payout(ctx context.Context, id string) (payments.Payout, error) {
	act := "read a payout"
	if !idFits(id) {
		return payments.Payout{}, &ReadError{Act: act, Reason: "the payout's id is missing or malformed"}
	}
	p := &payout{}
	if err := g.get(ctx, act, "/v1/payouts/"+id, nil, p); err != nil {
		return payments.Payout{}, err
	}
	amount, err := fromProvider(p.Amount, p.Currency)
	if err != nil || p.Object != "payout" || p.ID != id || token(p.Status) == "" || p.Automatic == nil || p.Created <= 0 || p.ArrivalDate <= 0 {
		return payments.Payout{}, &ReadError{Act: act, HTTPStatus: http.StatusOK, Reason: "the answer is no whole payout"}
	}
	return payments.Payout{
		ID: id, Amount: amount, Status: p.Status, Automatic: *p.Automatic, Arrival: time.Unix(p.ArrivalDate, 0).UTC(), Created: time.Unix(p.Created, 0).UTC(),
	}, nil
}

const transactionsPath = "/v1/balance_transactions"

// bookedCharge is a charge with its balance transaction, if it has one by now.
type bookedCharge struct {
	cause
	BalanceTransaction *movement `json:"balance_transaction"`
}

// ChargeTransactions lists the balance transactions of an intent's charges. The error is payments.ErrNoIntent if Stripe says that the
// account has no such intent.
func (g *Gateway) ChargeTransactions(ctx context.Context, intentID string) ([]payments.Transaction, error) {
	act := "list charges with their balance transactions"
	if !idFits(intentID) {
		return nil, &ReadError{Act: act, Reason: "the intent's id is missing or malformed"}
	}
	filter := payments.Params{"payment_intent": intentID, "expand[0]": "data.balance_transaction"}
	found, err := walk(ctx, g, act, "/v1/charges", filter, func(c *bookedCharge) (string, *payments.Transaction, error) {
		switch {
		case c == nil || c.Object != "charge" || !idFits(c.ID):
			return "", nil, errors.New("the answer holds something that is no whole charge")
		case c.PaymentIntent == nil || *c.PaymentIntent != intentID:
			return "", nil, errors.New("the listing holds a charge of another intent")
		case c.BalanceTransaction == nil:
			return c.ID, nil, nil
		}
		t, err := translateMovement(c.BalanceTransaction, &c.cause)
		return c.ID, &t, err
	})
	var refused *ReadError
	if errors.As(err, &refused) && refused.HTTPStatus == http.StatusNotFound && refused.Code == string(sdk.ErrorCodeResourceMissing) {
		refused.cause = payments.ErrNoIntent
	}
	var booked []payments.Transaction
	for _, t := range found {
		if t != nil {
			booked = append(booked, *t)
		}
	}
	return booked, err
}

var errNoTransaction = errors.New("the answer holds something that is no whole balance transaction")

// translateMovement turns Stripe's balance transaction into ours; of is what moved the balance, where that is known already.
func translateMovement(m *movement, of *cause) (payments.Transaction, error) {
	if m == nil || m.Object != "balance_transaction" || !idFits(m.ID) || token(m.Type) == "" || token(m.ReportingCategory) == "" ||
		m.Created <= 0 || m.AvailableOn <= 0 || m.Net != m.Amount-m.Fee {
		return payments.Transaction{}, errNoTransaction
	}
	t := payments.Transaction{
		ID: m.ID, Type: m.Type, Category: m.ReportingCategory, ExchangeRate: m.ExchangeRate.String(),
		Created: time.Unix(m.Created, 0).UTC(), Available: time.Unix(m.AvailableOn, 0).UTC(),
	}
	var err error
	if t.Amount, err = fromProvider(m.Amount, m.Currency); err != nil {
		return payments.Transaction{}, err
	}
	fee, err := fromProvider(m.Fee, m.Currency)
	if err != nil {
		return payments.Transaction{}, err
	}
	t.Fee, t.Net = fee.Amount, t.Amount.Amount-fee.Amount
	if of == nil {
		if t.SourceID, of, err = readCause(m.Source); err != nil || of == nil {
			return t, err
		}
	}
	t.SourceID = of.ID
	if of.PaymentIntent != nil {
		if !idFits(*of.PaymentIntent) {
			return payments.Transaction{}, errNoTransaction
		}
		t.IntentID = *of.PaymentIntent
	}
	var refs map[string]json.RawMessage
	if members(of.Metadata, &refs) == nil {
		t.PaymentRef, t.BookingRef, t.RefundRef = ref(refs[metadataPayment]), ref(refs[metadataBooking]), ref(refs[metadataRefund])
	}
	t.Presented, err = presented(m, of)
	return t, err
}

// ref is an id of ours that somebody has written down, or zero.
func ref(raw json.RawMessage) uuid.UUID {
	id, err := uuid.Parse(text(raw))
	if err != nil {
		return uuid.Nil
	}
	return id
}

// readCause reads what moved the balance: of what is not expanded only the id is known, of a fee of the account's own nothing.
func readCause(raw json.RawMessage) (id string, of *cause, err error) {
	if len(raw) == 0 || string(raw) == "null" {
		return "", nil, nil
	}
	if raw[0] == '"' {
		if json.Unmarshal(raw, &id) != nil || !idFits(id) {
			return "", nil, errNoTransaction
		}
		return id, nil, nil
	}
	of = &cause{}
	if json.Unmarshal(raw, of) != nil || !idFits(of.ID) || token(of.Object) == "" {
		return "", nil, errNoTransaction
	}
	return of.ID, of, nil
}

// presented is what the customer was shown, with the sign of the movement. A payout shows nothing to a customer.
func presented(m *movement, of *cause) (*domain.Money, error) {
	amount := of.Amount
	switch of.Object {
	case "charge":
		amount = of.AmountCaptured
	case "refund", "dispute":
	default:
		return nil, nil //nolint:nilnil // nothing was shown
	}
	if m.Amount < 0 {
		amount = -amount
	}
	shown, err := fromProvider(amount, of.Currency)
	if err != nil {
		return nil, err
	}
	return &shown, nil
}
