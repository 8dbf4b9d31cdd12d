package history

import (
	"fmt"
	"time"
)

// booked is a booking and its payment.
type booked struct {
	k      int
	purse  purse
	at     time.Time // when it was charged
	amount int64
}

// charge makes the provider's side of the payment, as its defect has it.
func (b booked) charge(w *writer, defect string) {
	t := Transaction{
		ID: fmt.Sprintf("txn_c%09d", b.k), Category: "charge", Source: fmt.Sprintf("ch_%09d", b.k), Intent: b.intent(),
		Shown: b.amount, ShownCurrency: b.purse.shown, Currency: b.purse.settled, Rate: b.purse.rate(), Created: b.at.Unix(),
		Payment: id("payment", b.k), Booking: id("booking", b.k),
	}
	settled := b.amount
	if defect == AmountDiffers {
		settled += 10
		t.Shown = settled
	}
	if defect == CurrencyDiffers {
		t.ShownCurrency = "GBP"
	}
	t.Amount = b.purse.settle(settled)
	t.Fee = b.purse.fee(t.Amount)
	if defect == FeeDiffers {
		t.Fee += b.purse.step
	}
	if defect != ConfirmedWithoutCharge && defect != Late {
		w.later(t)
	}
	if defect == ChargedWithoutBooking || defect == TwoCharges {
		other := t
		other.ID, other.Source = fmt.Sprintf("txn_x%09d", b.k), fmt.Sprintf("ch_x%09d", b.k)
		other.Intent, other.Created = fmt.Sprintf("pi_x%09d", b.k), t.Created+60
		if defect == ChargedWithoutBooking {
			other.Payment, other.Booking = "", ""
		}
		w.later(other)
	}
}

// refund gives back all or a part, and some of it fails a day later.
func (b booked) refund(w *writer, fate int64) {
	amount := b.amount
	if fate%2 == 0 {
		amount = b.amount / 3 / b.purse.step * b.purse.step
	}
	source, at, status := fmt.Sprintf("re_%09d", b.k), b.at.Add(time.Duration(1+fate%5)*time.Hour), "succeeded"
	w.later(b.back("refund", source, id("refund", b.k), amount, at))
	if fate < 8 {
		failed := b.back("refund_failure", source, id("refund", b.k), -amount, at.Add(24*time.Hour))
		failed.ID = fmt.Sprintf("txn_f%09d", b.k)
		w.later(failed)
		status = "failed"
	}
	w.files.refund(b, amount, source, "requested", status, at)
}

// back is a movement of the provider's that gives back an amount, or, if that is negative, undoes it.
func (b booked) back(category, source, refund string, amount int64, at time.Time) Transaction {
	return Transaction{
		ID: fmt.Sprintf("txn_r%09d", b.k), Category: category, Source: source, Intent: b.intent(), Amount: b.purse.settle(-amount), Currency: b.purse.settled,
		Shown: -amount, ShownCurrency: b.purse.shown, Rate: b.purse.rate(), Created: at.Unix(), Refund: refund,
	}
}

func (b booked) dispute(at time.Time) Transaction {
	t := b.back("dispute", fmt.Sprintf("dp_%09d", b.k), "", b.amount, at)
	t.ID, t.Fee = fmt.Sprintf("txn_d%09d", b.k), DisputeFee
	return t
}

func (b booked) intent() string { return fmt.Sprintf("pi_%09d", b.k) }
