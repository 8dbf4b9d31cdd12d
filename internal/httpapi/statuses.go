package httpapi

import (
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"holdfast/domain"
	"holdfast/payments"
)

// meaning is what one value of a status tells the client, and what to do about it. The OpenAPI document takes its lists
// of values from these tables.
type meaning struct{ value, says string }

func bookingStatuses() []meaning {
	return []meaning{
		{string(domain.BookingHeld), "the slot is yours until hold_expires_at and waits for its money. Look again; payment.status says how that stands."},
		{string(domain.BookingConfirmed), "paid, and the slot is yours. Nothing is left to do; it can be cancelled until its end."},
		{string(domain.BookingEnding), "being given up, for ending_reason. The slot is still taken until the payment provider has proved that no money can move; " +
			"if the money turns out to be taken, the booking becomes confirmed or, if its customer has cancelled it, is refunded by its policy. Look again, and do not call it off before."},
		{string(domain.BookingExpired), "over: the hold ended unpaid. No money was taken and the slot is free; book again with a new key."},
		{string(domain.BookingCancelled), "over, at the customer's request, and the slot is free. If it was paid, cancellation.refund goes back."},
		{string(domain.BookingFailed), "over: the payment came to nothing. No money was taken and the slot is free; see ending_reason and payment, and book again with a new key."},
	}
}

func endingReasons() []meaning {
	return []meaning{
		{string(domain.EndExpire), "the hold was over before the money was there. Leads to expired; book again with a new key."},
		{string(domain.EndCancel), "the customer asked for it. Leads to cancelled."},
		{string(domain.EndRefuse), "the provider refused the payment for good, or called it off. Leads to failed; see payment, and book again with a new key and a payment_method that is right."},
		{string(domain.EndDoubt), "what became of the payment could not be learned in any other way than by ending it. Leads to failed, with no money taken; book again with a new key."},
	}
}

func paymentStatuses() []meaning {
	return []meaning{
		{string(domain.PaymentPending), "not decided yet; a matter of seconds as a rule. Look again."},
		{string(domain.PaymentProcessing), "the provider has accepted it and not decided. Look again."},
		{string(domain.PaymentRequiresAction), "the customer's bank wants the customer to authenticate (3-D Secure). Nothing was taken. next_action, shown when you read this one booking, " +
			"says how: let the customer do it before hold_expires_at, and look again. After that the slot is free; book again with a new key."},
		{string(domain.PaymentDeclined), "the card was declined; decline_code and failure_code say why. Nothing was taken, and the slot is free after hold_expires_at; " +
			"book again with a new key and another payment_method. Until then this booking itself still holds the slot."},
		{string(domain.PaymentInDoubt), "the provider's answer was lost, and the provider is being asked. Look again, and book nothing in its place meanwhile: the money may have been taken."},
		{string(domain.PaymentSucceeded), "the money was taken, once. If the booking is over all the same, it goes back by itself: by the booking's policy if it was cancelled, in full otherwise."},
		{string(domain.PaymentCanceled), "no money was taken, and none can be any more. Once the booking is over, book again with a new key."},
		{string(domain.PaymentRefused), "the provider does not know this payment_method, or refused it for good; failure_code says why. Nothing was taken and the slot is free; " +
			"book again with a new key."},
	}
}

func disputeStatuses() []meaning {
	return []meaning{
		{string(domain.DisputeWarningNeedsResponse), "the cardholder's bank asks about the payment. No money has moved, and a refund settles it."},
		{string(domain.DisputeWarningUnderReview), "the bank has the answer and weighs it. No money has moved."},
		{string(domain.DisputeWarningClosed), "the bank's question is closed. No money has moved."},
		{string(domain.DisputeNeedsResponse), "the bank has taken the money back until it is decided, and waits for evidence. No refund can be made."},
		{string(domain.DisputeUnderReview), "the bank has the evidence and decides. No refund can be made."},
		{string(domain.DisputeWon), "the bank has given the money back to us. The booking is paid for, as before."},
		{string(domain.DisputeLost), "the cardholder has the money back, for good. It counts like a refund of the amount."},
	}
}

func cancelOutcomes() []meaning {
	return []meaning{
		{string(payments.CancelNow), "the booking would be over at once and its slot free; what it has paid goes back by its policy."},
		{string(payments.CancelEnding), "the booking would end; its slot stays taken until the payment provider has proved what became of the money. What was paid goes back by its policy as of the moment at which you ask."},
		{string(payments.CancelUnchanged), "nothing: the booking is over, or being cancelled, already."},
		{string(payments.CancelTooLate), "it would be refused: the booking is paid, and its end has passed."},
	}
}

func actionTypes() []meaning {
	return []meaning{
		{string(payments.ActionRedirect), "open url in the customer's browser. The bank asks the customer there and then sends the browser back to the return URL of this deployment."},
		{string(payments.ActionSDK), "hand client_secret to Stripe's own library in the customer's browser (Stripe.js: stripe.handleNextAction({clientSecret}))."},
	}
}

// explainOpen is explain for words that are not ours: others than these may come.
func explainOpen(s *huma.Schema, meanings []meaning) {
	explain(s, meanings)
	s.Enum = nil
	s.Description += "\nThe words are the provider's, and there may be others: treat one that you do not know as an open dispute."
}

// explain gives a schema its values, each with its meaning on a line of its own.
func explain(s *huma.Schema, meanings []meaning) {
	lines := make([]string, 0, len(meanings))
	s.Enum = nil
	for _, m := range meanings {
		s.Enum = append(s.Enum, m.value)
		lines = append(lines, "`"+m.value+"`: "+m.says)
	}
	s.Description = strings.Join(lines, "\n")
}
