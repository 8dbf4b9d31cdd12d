package domain

import "fmt"

// Money is an amount in the currency's minor units (cents, yen) with its ISO 4217 code in upper case.
type Money struct {
	Amount   int64  `json:"amount"`
	Currency string `json:"currency"`
}

// String shows the minor units as they are; formatting for people belongs to the edges.
func (m Money) String() string { return fmt.Sprintf("%d %s", m.Amount, m.Currency) }
