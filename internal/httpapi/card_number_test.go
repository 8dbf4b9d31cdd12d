package httpapi_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"holdfast/internal/httpapi"
)

// G9: a card number is not taken anywhere, in whatever way it is written, and neither the answer nor the log repeats it.
func TestCardNumbersAreRefusedAndNotRepeated(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for name, c := range map[string]struct {
		spoil    func(map[string]any)
		location string
	}{
		"as the payment method":   {set("payment_method", "4242424242424242"), "body.payment_method"},
		"with dashes":             {set("payment_method", "4242-4242-4242-4242"), "body.payment_method"},
		"after a prefix":          {set("payment_method", "pm_4242424242424242"), "body.payment_method"},
		"in the name":             {set("customer.name", "Ada 4242 4242 4242 4242"), "body.customer.name"},
		"with its date and code":  {set("customer.name", "4242 4242 4242 4242 12 27 123"), "body.customer.name"},
		"with no-break spaces":    {set("customer.name", "4242\u00a04242\u00a04242\u00a04242"), "body.customer.name"},
		"with long dashes":        {set("customer.name", "4242 – 4242 – 4242 – 4242"), "body.customer.name"},
		"in the e-mail":           {set("customer.email", "4242424242424242@mail.example"), "body.customer.email"},
		"in a note":               {set("metadata", map[string]any{"card": "Visa: 4242424242424242, 12/27"}), "body.metadata.card"},
		"in a note, after a UUID": {set("metadata", map[string]any{"card": uuid.NewString() + " 4242424242424242"}), "body.metadata.card"},
		"in a note, after a line": {set("metadata", map[string]any{"card": "7\n4242424242424242"}), "body.metadata.card"},
		"in a note's name":        {set("metadata", map[string]any{"4242424242424242": "x"}), "body.metadata"},
		"in a note's long name":   {set("metadata", map[string]any{"4242424242424242" + strings.Repeat("k", 41): ""}), "body.…"},
		"as an unknown member":    {set("4242424242424242", 1), "body.…"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := b.book(t, "k", b.body(c.spoil))
			p := a.refused(t, http.StatusUnprocessableEntity, httpapi.CodeValidationFailed)
			require.Len(t, p.Errors, 1, "%s", a.body)
			require.Equal(t, c.location, p.Errors[0].Location)
			require.NotContains(t, string(a.body), "4242")
		})
	}
	twice := b.book(t, "k", strings.Replace(b.body(), "{", `{"4242424242424242":1,"4242424242424242":2,`, 1))
	twice.refused(t, http.StatusBadRequest, httpapi.CodeMalformedJSON)
	require.NotContains(t, string(twice.body), "4242")
	query := b.get(t, "/v1/resources?4242424242424242=1")
	query.refused(t, http.StatusUnprocessableEntity, httpapi.CodeValidationFailed)
	require.NotContains(t, string(query.body), "4242")
	t.Cleanup(func() {
		require.Zero(t, b.rows(t), "something was written")
		require.NotContains(t, b.log.String(), "4242424242424242")
	})
}

// The networks' published test numbers, of every length.
func TestCardNumbersOfEveryNetwork(t *testing.T) {
	t.Parallel()
	for network, number := range map[string]string{
		"Visa": "4000056655665556", "Visa of 13": "4222222222222", "Mastercard": "5555555555554444", "Mastercard from 2": "2223003122003222",
		"American Express": "3782 822463 10005", "Discover": "6011111111111117", "Diners Club": "3056 9300 0902 0004", "Diners of 14": "36227206271667",
		"JCB": "3566002020360505", "UnionPay": "6200000000000005", "UnionPay of 19": "6205500000000000004", "Maestro of 12": "676770000005",
	} {
		require.True(t, refusesNote(t, number), network)
	}
}

// One number in ten has a card number's check digit: what is plainly something else is taken all the same.
func TestOtherNumbersAreTaken(t *testing.T) {
	t.Parallel()
	for name, number := range map[string]string{
		"other check digit": "4242424242424241", "11 digits": "42424242426", "20 digits": "42424242424242424242",
		"milliseconds": "1793522400000", "a moment": "20270501100007", "a telephone number": "+49 151 23456787", "unbroken": "+4915123456787",
		"a UUID": "42424242-4242-4242-9242-424242424242", "a price": "EUR 1.234.567.890,12", "a snowflake": "1234567890123456785",
	} {
		require.False(t, refusesNote(t, number), name)
	}
	require.True(t, httpapi.Luhn("1793522400000") && httpapi.Luhn("20270501100007") && httpapi.Luhn("4915123456787") && httpapi.Luhn("1234567890123456785"), "the check digit alone would refuse these")
	require.True(t, refusesNote(t, "+4242424242424242"), "no telephone number is that long")
}

func refusesNote(t *testing.T, note string) bool {
	t.Helper()
	b := &bed{}
	b.resource.ID.UUID = uuid.New()
	_, err := httpapi.DecodeBooking([]byte(b.body(set("metadata", map[string]any{"note": note}))))
	if err != nil {
		require.ErrorContains(t, err, "body.metadata.note: holds what looks like a card number")
	}
	return err != nil
}
