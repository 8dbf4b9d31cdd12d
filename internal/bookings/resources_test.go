package bookings_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/internal/bookings"
	"holdfast/internal/testdb"
)

func TestCurrencyOfAResourceIsOneOfISO4217(t *testing.T) {
	t.Parallel()
	service := bookings.New(testdb.New(t).Pool, nil, bookings.Config{})
	create := func(currency string) error {
		_, err := service.CreateResource(t.Context(), domain.Resource{
			Name: "Room", TimeZone: "UTC", Places: 1, UnitMinutes: 60, Price: domain.Money{Amount: 100, Currency: currency}, Hold: time.Minute,
		})
		return err
	}
	for _, currency := range []string{"", "eur", "EURO", "XXZ", "XXX", "€", "EU\x00"} {
		err := create(currency)
		var invalid *domain.ValidationError
		require.ErrorAs(t, err, &invalid, currency)
		require.Equal(t, "currency", invalid.Field)
		require.Contains(t, invalid.Reason, "is no currency of ISO 4217")
	}
	for _, currency := range []string{"EUR", "JPY", "KWD", "MGA"} {
		require.NoError(t, create(currency))
	}
}
