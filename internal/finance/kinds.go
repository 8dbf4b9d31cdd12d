package finance

import "strings"

// The kinds of exceptions.
const (
	ChargedWithoutBooking  = "charged_without_booking"
	ConfirmedWithoutCharge = "confirmed_without_charge"
	TwoCharges             = "two_charges"
	AmountDiffers          = "amount_differs"
	RefundWithoutCause     = "refund_without_cause"
	RefundMissing          = "refund_missing"
	FeeDiffers             = "fee_differs"
	DisputeUnknown         = "dispute_unknown"
	PayoutDiffers          = "payout_differs"
	EventUnpublished       = "event_unpublished"
	Late                   = "late"
	Unexplained            = "unexplained"
	PeriodChanged          = "period_changed"
)

// Kind is a kind of exception in words: for the pages, the terminal and docs/finance.md alike.
type Kind struct {
	Name  string // such as charged_without_booking
	Means string
	Next  string // what a person does about it
}

// Words are the kind's name for people.
func (k Kind) Words() string { return people(k.Name) }

// Kinds are all of them.
func Kinds() []Kind {
	return []Kind{
		{
			ChargedWithoutBooking, "The provider has charged, and no booking of ours was paid by it; or its booking has ended and nothing goes back.",
			"Refund it: by the booking if it has one, at the provider otherwise, where its reason names the charge. Then sign this off, and with it the refund that is listed for having been made there.",
		},
		{
			ConfirmedWithoutCharge, "We hold a booking for paid, and the provider's whole listing has no such charge.",
			"Look for the booking's id at the provider. If it is there, ask operations whether the keys are of another account; if not, the customer owes the amount.",
		},
		{
			TwoCharges, "A booking has been charged twice.",
			"Refund, at the provider, the charge that its reason names first. Then sign this off, and with it the refund that is listed for having been made there.",
		},
		{
			AmountDiffers, "Amount or currency of a charge, refund or dispute is another at the provider, whose amount is shown, than in our books.",
			"Compare both with what the booking costs. Give back what is too much, or ask for what is missing; then sign this off.",
		},
		{
			RefundWithoutCause, "The provider gave back what we did not ask for, such as a refund made by hand; or one that we hold for failed.",
			"Ask who made it: the provider names the person. If it was right, sign it off with that name; if not, the customer owes the amount.",
		},
		{
			RefundMissing, "We hold a refund for made, and the provider has none, or has taken it back.",
			"Look for it at the provider. If it is not there, the customer still waits for the money: give it back by another way, and sign this off.",
		},
		{
			FeeDiffers, "The fee is not what was agreed; the amount is what was taken too much, or with a minus too little.",
			"Compare with the contract. If the tariff has changed, store it (reconciler fees), and this closes by itself. If not, claim the difference.",
		},
		{
			DisputeUnknown, "Only one side knows the dispute.",
			"If only the provider has it, answer it there before its deadline, and ask operations why we were not told (reconciler events list).",
		},
		{
			PayoutDiffers, "A payout is not the sum of what went out with it, or has failed and what came back is not what went out; the amount is the difference.",
			"Compare it with the bank's statement. Ask the provider for the difference, by the payout's id.",
		},
		{
			EventUnpublished, "An event of a booking has not reached the stream, or the stream has lost it since. No money is missing.",
			"Operations see to it: worker outbox replay with the event's id. It closes by itself once the stream has the event.",
		},
		{
			Late, "Our books have it and the provider's do not yet, which is usual for some days.",
			"Wait. It closes by itself when it comes; if it has not come by the time that its reason names, it is listed as missing.",
		},
		{
			Unexplained, "The provider moved the balance for a reason that bookings do not have, such as a fee of its own.",
			"Look the transaction up at the provider, enter it in the accounts (our ledger has it under adjustments), and sign it off.",
		},
		{
			PeriodChanged, "A period that was signed off is no longer what was signed: the provider's sums of it have changed.",
			"Its reason names the days, who signed them, and what differs. Tell whoever has used the figures that were signed. Then sign this off.",
		},
	}
}

// KindOf is the kind of that name; one without words if there is none.
func KindOf(name string) Kind {
	for _, k := range Kinds() {
		if k.Name == name {
			return k
		}
	}
	return Kind{Name: name}
}

// AboutWhat says what an exception's or a pending amount's id is of.
func AboutWhat(kind, about string) string {
	for prefix, what := range map[string]string{
		"txn_": "the provider's transaction", "re_": "the provider's refund", "pyr_": "the provider's refund", "dp_": "the dispute", "du_": "the dispute", "po_": "the payout",
	} {
		if strings.HasPrefix(about, prefix) {
			return what
		}
	}
	switch kind {
	case ConfirmedWithoutCharge, "charge":
		return "our payment"
	case RefundMissing, "refund":
		return "our refund"
	case DisputeUnknown, "dispute":
		return "the dispute"
	case PayoutDiffers, "payout":
		return "the payout"
	case EventUnpublished:
		return "the event"
	case PeriodChanged:
		return "the signed period"
	}
	return "our entry"
}
