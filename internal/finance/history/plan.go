package history

import (
	"fmt"
	"time"
)

// Config is what to make.
type Config struct {
	Seed         uint64
	Transactions int // about as many of the provider's
	From         time.Time
	Days         int
	Planted      int // of each kind that does not match, as far as there is room
}

// The kinds of what is planted, in the words of the exceptions that should be found.
const (
	ChargedWithoutBooking  = "charged_without_booking"
	ConfirmedWithoutCharge = "confirmed_without_charge"
	TwoCharges             = "two_charges"
	AmountDiffers          = "amount_differs"
	CurrencyDiffers        = "currency_differs" // found as amount_differs
	RefundWithoutCause     = "refund_without_cause"
	RefundMissing          = "refund_missing"
	FeeDiffers             = "fee_differs"
	DisputeUnknown         = "dispute_unknown"
	PayoutDiffers          = "payout_differs"
	EventUnpublished       = "event_unpublished"
	Late                   = "late"
)

// Expected is one thing that does not match.
type Expected struct {
	Kind  string `json:"kind"`
	About string `json:"about"`
}

// plan says which booking has which defect. Bookings are numbered from 0; whose number is in no plan matches.
type plan struct {
	defects map[int]string
	payouts map[string]bool // by id: what went out is one less than its rows; or, of one that fails, what comes back one less than that
	list    []Expected
}

// bookings is how many bookings bring about so many transactions.
func (c Config) bookings() int { return max(c.Transactions*100/112, 40*12) }

// End is when the history ends.
func (c Config) End() time.Time { return c.From.AddDate(0, 0, c.Days) }

// charged is when a booking is charged: at even distances, several in one second where there are many.
func (c Config) charged(k int) time.Time {
	span := c.End().Sub(c.From) - time.Hour
	return c.From.Add(time.Duration(int64(span) / int64(c.bookings()) * int64(k))).Truncate(time.Second)
}

func (c Config) plan() plan {
	p := plan{defects: map[int]string{}, payouts: map[string]bool{}}
	old := []string{
		ChargedWithoutBooking, ConfirmedWithoutCharge, TwoCharges, AmountDiffers, CurrencyDiffers, RefundWithoutCause, RefundMissing, FeeDiffers,
		DisputeUnknown, EventUnpublished,
	}
	room := 0 // what is charged in the last days may yet be late
	for c.charged(room).Before(c.End().Add(-96*time.Hour)) && room < c.bookings() {
		room++
	}
	per := min(c.Planted, room/len(old)/2)
	for i, kind := range old {
		for n := range per {
			p.add(kind, (n*len(old)+i)*(room/(per*len(old))))
		}
	}
	first := room
	for c.charged(first).Before(c.End().Add(-24 * time.Hour)) {
		first++
	}
	for n := range min(c.Planted, (c.bookings()-first)/4) {
		p.add(Late, first+2*n)
	}
	for n := range min(c.Planted, (c.Days-4)/2) {
		id := payoutID(4+2*n, "USD")
		p.payouts[id] = true
		p.list = append(p.list, Expected{PayoutDiffers, id})
	}
	for n := range min(c.Planted, (c.Days-4)/4) {
		id := payoutID(6+4*n, "JPY")
		p.payouts[id] = true
		p.list = append(p.list, Expected{PayoutDiffers, backID(id)})
	}
	return p
}

func (p *plan) add(kind string, k int) {
	p.defects[k] = kind
	e := Expected{Kind: kind}
	switch kind {
	case ChargedWithoutBooking, TwoCharges:
		e.About = fmt.Sprintf("txn_x%09d", k)
	case AmountDiffers, CurrencyDiffers, FeeDiffers:
		e.Kind, e.About = AmountDiffers, fmt.Sprintf("txn_c%09d", k)
		if kind == FeeDiffers {
			e.Kind = FeeDiffers
		}
	case ConfirmedWithoutCharge, Late:
		e.About = id("payment", k)
	case RefundWithoutCause:
		e.About = fmt.Sprintf("re_x%09d", k)
	case RefundMissing:
		e.About = id("refund", k)
	case DisputeUnknown:
		e.About = fmt.Sprintf("dp_%09d", k)
	case EventUnpublished:
		e.About = id("event", k)
	}
	p.list = append(p.list, e)
}

// id is a UUID of our side.
func id(what string, k int) string {
	kinds := map[string]int{"booking": 1, "payment": 2, "refund": 3, "effect": 4, "event": 5}
	return fmt.Sprintf("%08x-0000-7000-8000-%012x", kinds[what], k)
}

func payoutID(day int, currency string) string { return fmt.Sprintf("po_%04d%s", day, currency) }

// fails tells which payouts the bank refuses.
func fails(day int, currency string) bool { return currency == "JPY" && day%4 == 2 }

// backID is of what brings back the money of such a one.
func backID(payout string) string { return "txn_v" + payout }

// roll is a number below n that only depends on the seed and what it is for.
func (c Config) roll(k int, purpose uint64, n int64) int64 {
	x := c.Seed*0x9e3779b97f4a7c15 + uint64(k)*0xbf58476d1ce4e5b9 + purpose*0x94d049bb133111eb //nolint:gosec // wraps on purpose
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	x ^= x >> 31
	return int64(x % uint64(n)) //nolint:gosec // less than n
}
