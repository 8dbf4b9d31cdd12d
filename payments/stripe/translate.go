package stripe

import (
	"errors"
	"time"

	sdk "github.com/stripe/stripe-go/v76"

	"holdfast/domain"
	"holdfast/payments"
)

var errNoIntentInAnswer = errors.New("the answer holds no whole payment intent")

// translate turns Stripe's intent into ours. Only a whole one passes: the SDK decodes {} and a bare id without complaint.
// The status is Stripe's word as it is: what an unheard-of one means is for the protocol to say.
func translate(p *sdk.PaymentIntent) (payments.Intent, error) {
	if p == nil || p.Object != "payment_intent" || !idFits(p.ID) || token(string(p.Status)) == "" {
		return payments.Intent{}, errNoIntentInAnswer
	}
	amount, err := fromProvider(p.Amount, string(p.Currency))
	if err != nil {
		return payments.Intent{}, err
	}
	received, err := fromProvider(p.AmountReceived, string(p.Currency))
	if err != nil {
		return payments.Intent{}, err
	}
	intent := payments.Intent{
		ID:             p.ID,
		Status:         payments.IntentStatus(p.Status),
		Amount:         amount,
		AmountReceived: received.Amount,
		PaymentID:      p.Metadata[metadataPayment],
		BookingID:      p.Metadata[metadataBooking],
		Livemode:       p.Livemode,
		Created:        time.Unix(p.Created, 0).UTC(),
	}
	if p.PaymentMethod != nil {
		intent.PaymentMethod = p.PaymentMethod.ID
	}
	if e := p.LastPaymentError; e != nil {
		intent.LastError = &payments.LastError{Code: token(string(e.Code)), DeclineCode: token(string(e.DeclineCode))}
		if e.PaymentMethod != nil {
			intent.LastError.PaymentMethod = e.PaymentMethod.ID
		}
	}
	return intent, nil
}

// translateCharge does the same for a charge of the intent.
func translateCharge(c *sdk.Charge, intentID string) (payments.ProviderCharge, error) {
	if c == nil || c.Object != "charge" || !idFits(c.ID) || token(string(c.Status)) == "" {
		return payments.ProviderCharge{}, errors.New("the answer holds something that is no whole charge")
	}
	if c.PaymentIntent == nil || c.PaymentIntent.ID != intentID {
		return payments.ProviderCharge{}, errors.New("the listing holds a charge of another intent")
	}
	amount, err := fromProvider(c.Amount, string(c.Currency))
	if err != nil {
		return payments.ProviderCharge{}, err
	}
	return payments.ProviderCharge{ID: c.ID, Status: string(c.Status), Amount: amount}, nil
}

// translateRefund does the same for a refund of the intent's charge.
func translateRefund(r *sdk.Refund, intentID string) (payments.ProviderRefund, error) {
	if r == nil || r.Object != "refund" || !idFits(r.ID) || token(string(r.Status)) == "" {
		return payments.ProviderRefund{}, errors.New("the answer holds something that is no whole refund")
	}
	if r.PaymentIntent == nil || r.PaymentIntent.ID != intentID {
		return payments.ProviderRefund{}, errors.New("the answer holds a refund of another intent")
	}
	amount, err := fromProvider(r.Amount, string(r.Currency))
	if err != nil {
		return payments.ProviderRefund{}, err
	}
	return payments.ProviderRefund{
		ID: r.ID, IntentID: intentID, Status: string(r.Status), Amount: amount, FailureCode: token(string(r.FailureReason)),
		RefundID: r.Metadata[metadataRefund], Ordinal: r.Metadata[metadataOrdinal],
	}, nil
}

// translateDispute does the same for a dispute of the intent's charge. The status is Stripe's word as it is. Whether the
// money is gone is what the dispute's own balance transactions say: one that takes it, and perhaps one that brings it back.
func translateDispute(d *sdk.Dispute, intentID string) (payments.ProviderDispute, error) {
	if d == nil || d.Object != "dispute" || !idFits(d.ID) || token(string(d.Status)) == "" || d.Created <= 0 {
		return payments.ProviderDispute{}, errors.New("the answer holds something that is no whole dispute")
	}
	if d.PaymentIntent == nil || d.PaymentIntent.ID != intentID {
		return payments.ProviderDispute{}, errors.New("the listing holds a dispute of another intent")
	}
	amount, err := fromProvider(d.Amount, string(d.Currency))
	if err != nil {
		return payments.ProviderDispute{}, err
	}
	away := 0
	for _, t := range d.BalanceTransactions {
		switch {
		case t == nil || t.Object != "balance_transaction":
			return payments.ProviderDispute{}, errors.New("the listing holds a dispute whose balance transactions are not whole")
		case t.Amount < 0:
			away++
		case t.Amount > 0:
			away--
		}
	}
	return payments.ProviderDispute{
		Dispute: domain.Dispute{
			ID: d.ID, Status: domain.DisputeStatus(d.Status), Amount: amount, Reason: token(string(d.Reason)), Withdrawn: away > 0,
		},
		IntentID: intentID, Opened: time.Unix(d.Created, 0).UTC(),
	}, nil
}
