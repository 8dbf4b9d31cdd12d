package httpapi_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/internal/httpapi"
)

// halfHours makes a resource in a zone that is booked by the half hour.
func (b *bed) halfHours(t *testing.T, zone string, price domain.Money) domain.Resource {
	t.Helper()
	r, err := b.bookings.CreateResource(t.Context(), domain.Resource{
		Name: zone, TimeZone: zone, Places: 1, UnitMinutes: 30, Price: price, Hold: 15 * time.Minute,
	})
	require.NoError(t, err)
	return r
}

// bookSpan books a resource from one moment to another under a key of its own.
func (b *bed) bookSpan(t *testing.T, r domain.Resource, start, end string) answer {
	t.Helper()
	return b.book(t, start+"/"+end+"/"+r.ID.String(),
		b.body(set("resource_id", r.ID.String()), set("start", start), set("end", end), without("expected_total")))
}

// total is what a booking costs.
func (a answer) total(t *testing.T) int64 {
	t.Helper()
	require.Equal(t, http.StatusCreated, a.status, "%s", a.body)
	var made httpapi.Booking
	strict(t, a.body, &made)
	return made.Total.Amount
}

// Incident 25 (G2, G8): the days on which clocks are changed, in four zones. Times are as people on the spot would write
// them, and what passes truly is counted by hand: so many half hours of ten each.
//
// An hour that comes twice is two hours, each with its offset. An hour that never comes cannot be meant: a local time
// alone is refused, and with an offset it is an instant, the same one as some hour that does come.
func TestIncident25_DaysOnWhichClocksAreChanged(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for zone, day := range map[string]struct {
		twice         [2][2]string // the repeated half hour: before the change, and after it
		across        [2]string    // from midnight to six on that day
		price         int64
		skipped       string    // a local time that never comes
		same          [2]string // with the offset of before the change, it is the same instant as with that of after
		acrossSkipped [2]string // from midnight to six on that day
		skippedPrice  int64
	}{
		"America/New_York": {
			twice: [2][2]string{
				{"2027-11-07T01:30:00-04:00", "2027-11-07T02:00:00-04:00"},
				{"2027-11-07T01:30:00-05:00", "2027-11-07T02:00:00-05:00"},
			},
			across: [2]string{"2027-11-07T00:00:00-04:00", "2027-11-07T06:00:00-05:00"}, price: 1400, // seven hours
			skipped: "2027-03-14T02:30:00", same: [2]string{"2027-03-14T02:30:00-05:00", "2027-03-14T03:30:00-04:00"},
			acrossSkipped: [2]string{"2027-03-14T00:00:00-05:00", "2027-03-14T06:00:00-04:00"}, skippedPrice: 1000,
		},
		"Europe/Berlin": {
			twice: [2][2]string{
				{"2027-10-31T02:30:00+02:00", "2027-10-31T03:00:00+02:00"},
				{"2027-10-31T02:30:00+01:00", "2027-10-31T03:00:00+01:00"},
			},
			across: [2]string{"2027-10-31T00:00:00+02:00", "2027-10-31T06:00:00+01:00"}, price: 1400,
			skipped: "2027-03-28T02:30:00", same: [2]string{"2027-03-28T02:30:00+01:00", "2027-03-28T03:30:00+02:00"},
			acrossSkipped: [2]string{"2027-03-28T00:00:00+01:00", "2027-03-28T06:00:00+02:00"}, skippedPrice: 1000,
		},
		"Australia/Lord_Howe": { // by half an hour only
			twice: [2][2]string{
				{"2027-04-04T01:30:00+11:00", "2027-04-04T02:00:00+11:00"},
				{"2027-04-04T01:30:00+10:30", "2027-04-04T02:00:00+10:30"},
			},
			across: [2]string{"2027-04-04T00:00:00+11:00", "2027-04-04T06:00:00+10:30"}, price: 1300, // six and a half
			skipped: "2027-10-03T02:15:00", same: [2]string{"2027-10-03T02:15:00+10:30", "2027-10-03T02:45:00+11:00"},
			acrossSkipped: [2]string{"2027-10-03T00:00:00+10:30", "2027-10-03T06:00:00+11:00"}, skippedPrice: 1100,
		},
		"Pacific/Chatham": { // at a quarter to three
			twice: [2][2]string{
				{"2027-04-04T03:00:00+13:45", "2027-04-04T03:30:00+13:45"},
				{"2027-04-04T03:00:00+12:45", "2027-04-04T03:30:00+12:45"},
			},
			across: [2]string{"2027-04-04T00:00:00+13:45", "2027-04-04T06:00:00+12:45"}, price: 1400,
			skipped: "2027-09-26T03:00:00", same: [2]string{"2027-09-26T03:00:00+12:45", "2027-09-26T04:00:00+13:45"},
			acrossSkipped: [2]string{"2027-09-26T00:00:00+12:45", "2027-09-26T06:00:00+13:45"}, skippedPrice: 1000,
		},
	} {
		t.Run(zone, func(t *testing.T) {
			t.Parallel()
			room, other := b.halfHours(t, zone, domain.Money{Amount: 100, Currency: "EUR"}), b.halfHours(t, zone, domain.Money{Amount: 100, Currency: "EUR"})
			for _, half := range day.twice {
				require.Equal(t, int64(100), b.bookSpan(t, room, half[0], half[1]).total(t), half)
			}
			b.bookSpan(t, room, day.twice[0][0], day.twice[1][0]).refused(t, http.StatusConflict, httpapi.CodeSlotUnavailable)
			require.Equal(t, day.price, b.bookSpan(t, other, day.across[0], day.across[1]).total(t))

			p := b.bookSpan(t, room, day.skipped, day.acrossSkipped[1]).refused(t, http.StatusUnprocessableEntity, httpapi.CodeValidationFailed)
			require.Contains(t, p.Detail, "has no offset")
			start, err := time.Parse(time.RFC3339, day.same[0])
			require.NoError(t, err)
			bodies := [2]string{}
			for i, same := range day.same {
				bodies[i] = b.body(set("resource_id", room.ID.String()), set("start", same), without("expected_total"),
					set("end", start.Add(30*time.Minute).Format(time.RFC3339)))
			}
			first, again := b.book(t, zone, bodies[0]), b.book(t, zone, bodies[1])
			require.Equal(t, int64(100), first.total(t))
			require.Equal(t, "true", again.header.Get("Idempotency-Replayed"), "the two name one instant")
			require.Equal(t, string(first.body), string(again.body))
			require.Equal(t, day.skippedPrice, b.bookSpan(t, other, day.acrossSkipped[0], day.acrossSkipped[1]).total(t))

			// The table is right about the zone.
			location, err := time.LoadLocation(zone)
			require.NoError(t, err)
			for _, written := range []string{day.twice[0][0], day.twice[1][0], day.across[0], day.across[1], day.acrossSkipped[0], day.acrossSkipped[1], day.same[1]} {
				at, err := time.Parse(time.RFC3339, written)
				require.NoError(t, err)
				require.Equal(t, written, at.In(location).Format(time.RFC3339), "a time of that place")
			}
			require.NotEqual(t, day.same[0], start.In(location).Format(time.RFC3339), "no time of that place")
		})
	}
}

// Incident 25 (G2): neighbours are no rivals, down to the microsecond; whoever overlaps by one is.
func TestIncident25_NeighboursAndRivals(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const day = "2027-05-02T"
	for _, span := range []struct {
		start, end string
		status     int
	}{
		{"10:00:00Z", "11:00:00Z", http.StatusCreated},
		{"11:00:00Z", "12:00:00Z", http.StatusCreated},
		{"11:59:59Z", "12:59:59Z", http.StatusConflict},               // by a second
		{"11:59:59.999999Z", "12:59:59.999999Z", http.StatusConflict}, // by a microsecond
		{"09:00:00.000001Z", "10:00:00.000001Z", http.StatusConflict},
		{"09:00:00Z", "13:00:00Z", http.StatusConflict}, // encloses both
		{"12:00:00.000001Z", "13:00:00.000001Z", http.StatusCreated},
		{"13:00:00.000001Z", "14:00:00.000001Z", http.StatusCreated},
		{"14:00:00Z", "15:00:00Z", http.StatusConflict},
		{"15:00:00Z", "15:00:00Z", http.StatusUnprocessableEntity}, // no length
		{"15:00:00Z", "16:00:00+01:00", http.StatusUnprocessableEntity},
		{"16:00:00Z", "15:00:00Z", http.StatusUnprocessableEntity},
		{"15:00:00Z", "15:30:00Z", http.StatusUnprocessableEntity}, // half a unit
		{"15:00:00Z", "16:00:00.0000001Z", http.StatusUnprocessableEntity},
		{"15:00:00Z", "16:00:00.000001Z", http.StatusUnprocessableEntity},
		{"15:00:00Z", "18:00:00+02:00", http.StatusCreated},
	} {
		a := b.bookSpan(t, b.resource, day+span.start, day+span.end)
		require.Equal(t, span.status, a.status, "%s–%s: %s", span.start, span.end, a.body)
	}
}
