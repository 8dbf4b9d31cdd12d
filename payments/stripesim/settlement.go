package stripesim

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"time"
)

// Settlement says what becomes of money that was charged: in which currency it is held, what it costs and when it can be paid out.
type Settlement struct {
	// Currency is what the account is settled in. Default eur.
	Currency string `json:"currency"`
	// Rates are units of Currency for one unit of another (a yen, not a hundred). A currency without a rate settles in itself.
	Rates map[string]float64 `json:"rates"`
	// FeeBPS and FeeFixed are the fee of a charge: hundredths of a per cent of it, and a fixed amount. Default 150 and 25.
	FeeBPS   int64 `json:"fee_bps"`
	FeeFixed int64 `json:"fee_fixed"`
	// DisputeFee is taken with a dispute's money and never comes back. Default 1500.
	DisputeFee int64 `json:"dispute_fee"`
	// AvailableDays is how many days after it a charge's money is available, at midnight UTC. Default 2.
	AvailableDays int `json:"available_days"`
	// LateMS is how long a charge goes without balance transaction, in virtual milliseconds. Default 0.
	LateMS int64 `json:"late_ms"`
	// Strict makes refunds draw on the available balance: while it is too small they are pending. Default false, or no test could
	// refund what it has just charged.
	Strict bool `json:"strict"`
}

// DefaultSettlement is what holds where nothing else is said.
func DefaultSettlement() Settlement {
	return Settlement{
		Currency: "eur", Rates: map[string]float64{"chf": 1.05, "gbp": 1.16, "jpy": 0.0062, "usd": 0.92}, FeeBPS: 150, FeeFixed: 25,
		DisputeFee: 1500, AvailableDays: 2,
	}
}

func (s Settlement) check() error {
	switch {
	case !validCurrency(s.Currency):
		return fmt.Errorf("currency %q must be three small letters", s.Currency)
	case s.FeeBPS < 0 || s.FeeFixed < 0 || s.DisputeFee < 0 || s.AvailableDays < 0 || s.LateMS < 0:
		return errors.New("fee_bps, fee_fixed, dispute_fee, available_days and late_ms are not negative")
	}
	for currency, rate := range s.Rates {
		if !validCurrency(currency) || rate <= 0 || math.IsInf(rate, 0) {
			return fmt.Errorf("rate %v of %q must be of a currency in small letters, and greater than 0", rate, currency)
		}
	}
	return nil
}

// Settlement returns what holds now.
func (s *Simulator) Settlement() Settlement {
	w := s.world.Load()
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.settlement
	now.Rates = maps.Clone(now.Rates)
	return now
}

// SetSettlement changes what becomes of money from now on. What is booked stays as it is.
func (s *Simulator) SetSettlement(change Settlement) error {
	if err := change.check(); err != nil {
		return err
	}
	change.Rates = maps.Clone(change.Rates)
	w := s.world.Load()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.settlement = change
	return nil
}

// controlSettlement changes the members that are named.
func (s *Simulator) controlSettlement(rw http.ResponseWriter, r *http.Request) {
	change := s.Settlement()
	if !decode(rw, r, &change) {
		return
	}
	if err := s.SetSettlement(change); err != nil {
		complain(rw, err.Error())
		return
	}
	reply(rw, http.StatusOK, s.Settlement())
}

// settled turns an amount into what it is in the balance. rate is 0 where nothing is exchanged.
func (s Settlement) settled(amount int64, currency string) (settled int64, in string, rate float64) {
	rate, exchanged := s.Rates[currency]
	if !exchanged || currency == s.Currency {
		return amount, currency, 0
	}
	return int64(math.Round(float64(amount) * rate * math.Pow10(decimals(s.Currency)-decimals(currency)))), s.Currency, rate
}

// fee of a charge that is worth so much in the balance, in whole steps of what its currency can be paid in.
func (s Settlement) fee(settled int64, currency string) int64 {
	fee := int64(math.Round(float64(settled)*float64(s.FeeBPS)/10_000)) + s.FeeFixed
	return fee - fee%step(currency)
}

// available is when the money of a charge made at a moment can be paid out.
func (s Settlement) available(at time.Time) time.Time {
	return at.UTC().Truncate(24*time.Hour).AddDate(0, 0, s.AvailableDays)
}

// decimals of a currency as Stripe sends its amounts.
func decimals(currency string) int {
	switch {
	case slices.Contains([]string{
		"bif", "clp", "djf", "gnf", "jpy", "kmf", "krw", "mga", "pyg", "rwf", "vnd", "vuv", "xaf", "xof", "xpf",
	}, currency):
		return 0
	case slices.Contains([]string{"bhd", "jod", "kwd", "omr", "tnd"}, currency):
		return 3
	}
	return 2
}
