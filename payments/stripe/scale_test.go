package stripe

import (
	"math"
	"testing"

	"github.com/bojanz/currency"
	"github.com/stretchr/testify/require"

	"holdfast/domain"
)

// TestScale compares with amounts worked out by hand from the provider's documentation: so many units of the currency
// are sent as so much.
func TestScale(t *testing.T) {
	t.Parallel()
	tests := []struct {
		money domain.Money
		sent  int64
	}{
		{domain.Money{Amount: 1000, Currency: "EUR"}, 1000}, // 10 €
		{domain.Money{Amount: 1000, Currency: "USD"}, 1000},
		{domain.Money{Amount: 500, Currency: "JPY"}, 500}, // 500 ¥
		{domain.Money{Amount: 500, Currency: "KRW"}, 500},
		{domain.Money{Amount: 5, Currency: "UGX"}, 500},     // 5 UGX
		{domain.Money{Amount: 5, Currency: "ISK"}, 500},     // 5 kr
		{domain.Money{Amount: 500, Currency: "MGA"}, 5},     // 5 ariary, of 100 in the books
		{domain.Money{Amount: 1000, Currency: "HUF"}, 1000}, // 10 Ft: charged with two decimals, paid out without
		{domain.Money{Amount: 80045, Currency: "TWD"}, 80045},
		{domain.Money{Amount: 5120, Currency: "KWD"}, 5120}, // 5.120
		{domain.Money{Amount: 5120, Currency: "TND"}, 5120},
		{domain.Money{Amount: 999_999, Currency: "ISK"}, 99_999_900},
		{domain.Money{Amount: 9_999_999_900, Currency: "MGA"}, 99_999_999},
		{domain.Money{Amount: 99_999_999, Currency: "JPY"}, 99_999_999},
		{domain.Money{Amount: 999_999_999_999, Currency: "IDR"}, 999_999_999_999},
	}
	for _, tt := range tests {
		t.Run(tt.money.String(), func(t *testing.T) {
			t.Parallel()
			sent, err := toProvider(tt.money)
			require.NoError(t, err)
			require.Equal(t, tt.sent, sent)
			back, err := fromProvider(sent, tt.money.Currency)
			require.NoError(t, err)
			require.Equal(t, tt.money, back)
		})
	}
}

// TestScaleNeverGuesses: an amount is never rounded, and an unknown currency has no scale.
func TestScaleNeverGuesses(t *testing.T) {
	t.Parallel()
	for _, m := range []domain.Money{
		{Amount: 5123, Currency: "KWD"}, // 5.123: the last digit must be 0
		{Amount: 550, Currency: "MGA"},  // half an ariary
		{Amount: 0, Currency: "EUR"},
		{Amount: -5, Currency: "UGX"},
		{Amount: 100_000_000, Currency: "EUR"}, // nine digits
		{Amount: 1_000_000, Currency: "ISK"},   // with the two that are 00
		{Amount: 1_000_000_000_000, Currency: "IDR"},
		{Amount: math.MaxInt64, Currency: "UGX"},
		{Amount: math.MinInt64, Currency: "ISK"},
		{Amount: 1000, Currency: "eur"},
		{Amount: 1000, Currency: ""},
		{Amount: 1000, Currency: "EURO"},
		{Amount: 1000, Currency: "ZZZ"},
		{Amount: 1000, Currency: "IQD"},
		{Amount: 1000, Currency: "LYD"},
		{Amount: 1000, Currency: "CLF"},
		{Amount: 1000, Currency: "UYI"},
	} {
		_, err := toProvider(m)
		require.Error(t, err, m)
	}
	for code, amount := range map[string]int64{"ugx": 550, "isk": 1, "mga": math.MaxInt64, "iqd": 1, "": 1, "zzz": 1} {
		_, err := fromProvider(amount, code)
		require.Error(t, err, code)
	}
}

// TestScaleOfEveryCurrency: whatever ISO 4217 lists is sent as it is, except for those named here.
func TestScaleOfEveryCurrency(t *testing.T) {
	t.Parallel()
	type scale struct{ multiply, divide int64 }
	special := map[string]scale{"UGX": {100, 1}, "ISK": {100, 1}, "MGA": {1, 100}}
	refused := map[string]bool{"IQD": true, "LYD": true, "CLF": true, "UYI": true, "UYW": true}
	zero := map[string]bool{}
	for _, code := range []string{
		"BIF", "CLP", "DJF", "GNF", "JPY", "KMF", "KRW", "MGA", "PYG", "RWF", "UGX", "VND", "VUV", "XAF", "XOF", "XPF",
	} {
		zero[code] = true
	}
	three := map[string]bool{"BHD": true, "JOD": true, "KWD": true, "OMR": true, "TND": true}
	for _, code := range currency.GetCurrencyCodes() {
		multiply, divide, err := factor(code)
		if refused[code] {
			require.Error(t, err, code)
			continue
		}
		require.NoError(t, err, code)
		want, isSpecial := special[code]
		if !isSpecial {
			want = scale{1, 1}
			digits, _ := currency.GetDigits(code)
			require.Equal(t, zero[code], digits == 0, code)
			require.Equal(t, three[code], digits == 3, code)
		}
		require.Equal(t, want, scale{multiply, divide}, code)
	}
}
