package httpapi

import (
	"maps"
	"net/mail"
	"regexp"
	"slices"
	"strings"

	"holdfast/domain"
	"holdfast/internal/bookings"
)

// bookingRequest is the body of a booking request, as the OpenAPI document shows it. The limits that it states are
// those that decodeBooking applies; a test compares them.
type bookingRequest struct {
	ResourceID    string            `json:"resource_id" format:"uuid" doc:"What to book." example:"0197f2a4-6d0e-7c3a-9d7e-0a4f3c1b2d5e"`
	Start         string            `json:"start" format:"date-time" doc:"The first moment, RFC 3339 with an offset, from 2000 to 2100, at most microseconds. The offset makes it an instant and is not compared with the resource's time zone: an hour that a clock shows twice is booked by its two offsets, and an hour that it skips cannot be meant, since without its offset a local time is refused. It may be in the past: bookings are also entered afterwards." example:"2027-05-01T10:00:00+02:00"`
	End           string            `json:"end" format:"date-time" doc:"The first moment after it: later than start, by at most 366 days and a multiple of the resource's unit. What passes between the two is charged, whatever clocks are changed meanwhile." example:"2027-05-01T11:00:00+02:00"`
	Quantity      int               `json:"quantity,omitempty" minimum:"1" maximum:"1000" default:"1" doc:"How many places."`
	ExpectedTotal *moneyRequest     `json:"expected_total,omitempty" doc:"What you have shown to the customer. If the total is another, nothing is booked: 409 price_changed."`
	Customer      customer          `json:"customer"`
	PaymentMethod string            `json:"payment_method" minLength:"1" maxLength:"255" pattern:"^[!-~]+$" doc:"The payment provider's token for the customer's card. A card number is refused, here and in every other text." example:"pm_card_visa"`
	Metadata      map[string]string `json:"metadata,omitempty" maxProperties:"20" doc:"Your own notes: keys of at most 40 characters, values of at most 500. Given back as they came. Never card numbers."`
}

type moneyRequest struct {
	Amount   int64  `json:"amount" minimum:"0" maximum:"999999999999" doc:"Minor units: 2500 is 25.00 EUR, but 2500 JPY." example:"2500"`
	Currency string `json:"currency" pattern:"^[A-Za-z]{3}$" doc:"ISO 4217." example:"EUR"`
}

type customer struct {
	Name  string `json:"name" minLength:"1" maxLength:"200" doc:"Who books; no control characters." example:"Ada Lovelace"`
	Email string `json:"email" format:"email" minLength:"3" maxLength:"254" doc:"Where to reach them." example:"ada@example.org"`
}

const (
	maxAmount        = 999_999_999_999
	maxQuantity      = 1000
	maxName          = 200
	maxEmail         = 254
	maxPaymentMethod = 255
	maxMetadata      = 20
	maxMetadataKey   = 40
	maxMetadataValue = 500
)

var currencyCode = regexp.MustCompile(`^[A-Za-z]{3}$`)

// decodeBooking reads and checks the body of a booking request. It returns every fault at once, as faults, or what is
// malformed, as a *Problem. Whatever it lets through can be stored.
func decodeBooking(body []byte) (bookings.Request, error) {
	value, err := parseJSON(body)
	if err != nil {
		return bookings.Request{}, err
	}
	var found faults
	m := readObject(value, "", &found)
	if m.values == nil {
		return bookings.Request{}, found
	}
	r := bookings.Request{
		ResourceID: m.resource("resource_id"),
		Start:      m.instant("start"), End: m.instant("end"),
		Quantity:      int(m.integer("quantity", 1, maxQuantity, false, 1)),
		PaymentMethod: m.text("payment_method", 1, maxPaymentMethod, visibleASCII()),
		Metadata:      m.metadata("metadata"),
	}
	m.object("expected_total", false, func(m members) { r.Expected = m.money() })
	m.object("customer", true, func(m members) {
		r.CustomerName = m.text("name", 1, maxName, line())
		r.CustomerEmail = m.email("email")
	})
	m.end()
	checkSpan(m, r)
	if len(found) > 0 {
		return bookings.Request{}, found
	}
	return r, nil
}

// checkSpan compares the ends of the booking, where both could be read.
func checkSpan(m members, r bookings.Request) {
	if r.Start.IsZero() || r.End.IsZero() {
		return
	}
	switch span := r.End.Sub(r.Start); {
	case span == 0:
		m.fault("end", "is the same moment as start: a booking has a length")
	case span < 0:
		m.fault("end", "is before start")
	case span > bookings.MaxDuration:
		m.fault("end", "is more than 366 days after start")
	}
}

func (m members) resource(name string) domain.ResourceID {
	v, ok := m.take(name, true)
	if !ok {
		return domain.ResourceID{}
	}
	s, _ := v.(string)
	id, err := domain.ParseID[domain.ResourceID](s)
	if err != nil {
		m.fault(name, "want the id of a resource, a lower-case UUID")
	}
	return id
}

func (m members) money() *domain.Money {
	amount := m.integer("amount", 0, maxAmount, true, 0)
	v, ok := m.take("currency", true)
	s, _ := v.(string)
	if ok && !currencyCode.MatchString(s) {
		m.fault("currency", "want an ISO 4217 code such as EUR")
	}
	return &domain.Money{Amount: amount, Currency: strings.ToUpper(s)}
}

func (m members) email(name string) string {
	v, ok := m.take(name, true)
	if !ok {
		return ""
	}
	s, _ := v.(string)
	address, err := mail.ParseAddress(s)
	// A display name, a comment or a folded line parses, too, but is no address alone.
	if err != nil || address.Address != s || !fits(s, 1, maxEmail, line()) || strings.ContainsAny(s, " \t") {
		m.fault(name, "want one e-mail address of at most 254 characters, such as ada@example.org")
		return ""
	}
	if holdsCardNumber(s) {
		m.fault(name, noCardNumber)
		return ""
	}
	return s
}

func (m members) metadata(name string) map[string]string {
	notes := map[string]string{}
	m.object(name, false, func(m members) {
		if len(m.values) > maxMetadata {
			m.fault("", "want at most 20 members")
		}
		for _, key := range slices.Sorted(maps.Keys(m.values)) {
			v, _ := m.take(key, true)
			s, isText := v.(string)
			switch {
			case !fits(key, 1, maxMetadataKey, line()):
				m.fault(key, "want names of 1 to 40 characters without control characters")
			case holdsCardNumber(key):
				m.fault("", "the name of a member "+noCardNumber)
			case !isText || !fits(s, 0, maxMetadataValue, anyText()):
				m.fault(key, "want a string of at most 500 characters without NUL")
			case holdsCardNumber(s):
				m.fault(key, noCardNumber)
			}
			notes[key] = s
		}
	})
	return notes
}
