package bookings

import (
	"bytes"
	"maps"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"holdfast/domain"
)

// sameMeaning is the contract's own words, without a hash: instants to the microsecond, one place where none are named, and
// metadata that is empty is none.
func sameMeaning(a, b Request) bool {
	places := func(r Request) int { return max(r.Quantity, 1) }
	money := func(r Request) domain.Money {
		if r.Expected == nil {
			return domain.Money{Amount: -1}
		}
		return *r.Expected
	}
	return a.ResourceID == b.ResourceID && places(a) == places(b) && money(a) == money(b) &&
		a.Start.UnixMicro() == b.Start.UnixMicro() && a.End.UnixMicro() == b.End.UnixMicro() &&
		a.CustomerName == b.CustomerName && a.CustomerEmail == b.CustomerEmail && a.PaymentMethod == b.PaymentMethod &&
		maps.Equal(a.Metadata, b.Metadata)
}

// FuzzFingerprint: two requests have one fingerprint just if they mean the same (G1). The second request is the first with
// some members replaced, as the bits of differ say, so that equal ones come up, too.
func FuzzFingerprint(f *testing.F) {
	const whole = int64(1_800_000_000_000_000_000)
	for bit := range 9 {
		f.Add(uint16(1<<bit), whole, int64(3600e9), uint16(1), "Ada", "a@b.example", "pm_1", "k", "v", int64(100),
			whole+1000, int64(7200e9), uint16(2), "Bob", "c@d.example", "pm_2", "l", "w", int64(200), int16(120))
		f.Add(uint16(1<<bit), whole, int64(3600e9), uint16(0), "a\",\"b", "<>&", "\u2028", "", "", int64(-1),
			whole+999, int64(3600e9), uint16(1), "a\",\"b", "\\u003c>&", "\\u2028", "", "\x00", int64(0), int16(-630))
	}
	resources := [2]domain.ResourceID{{UUID: uuid.UUID{1}}, {UUID: uuid.UUID{2}}}
	f.Fuzz(func(t *testing.T, differ uint16,
		start, length int64, quantity uint16, name, email, method, key, value string, expected int64,
		start2, length2 int64, quantity2 uint16, name2, email2, method2, key2, value2 string, expected2 int64, offset int16,
	) {
		for _, s := range []string{name, email, method, key, value, name2, email2, method2, key2, value2} {
			if !utf8.ValidString(s) {
				return // no request holds such a text: the body's decoder and PostgreSQL refuse it
			}
		}
		build := func(resource domain.ResourceID, start, length int64, quantity uint16, name, email, method, key, value string, expected int64) Request {
			at := time.Unix(0, start).UTC()
			r := Request{
				ResourceID: resource, Start: at, End: at.Add(time.Duration(length)), Quantity: int(quantity), CustomerName: name,
				CustomerEmail: email, PaymentMethod: method,
			}
			if key != "" {
				r.Metadata = map[string]string{key: value, "order": "7"}
			}
			if expected >= 0 {
				r.Expected = &domain.Money{Amount: expected, Currency: "EUR"}
			}
			return r
		}
		a := build(resources[0], start, length, quantity, name, email, method, key, value, expected)
		other := build(resources[1], start2, length2, quantity2, name2, email2, method2, key2, value2, expected2)
		b := a
		for bit, replace := range []func(){
			func() { b.ResourceID = other.ResourceID },
			func() { b.Start = other.Start },
			func() { b.End = other.End },
			func() { b.Quantity = other.Quantity },
			func() { b.Expected = other.Expected },
			func() { b.CustomerName = other.CustomerName },
			func() { b.CustomerEmail = other.CustomerEmail },
			func() { b.PaymentMethod = other.PaymentMethod },
			func() { b.Metadata = other.Metadata },
		} {
			if differ&(1<<bit) != 0 {
				replace()
			}
		}
		sum := func(r Request) []byte {
			hash, err := fingerprint(fingerprintVersion, r.normalise())
			require.NoError(t, err)
			return hash
		}
		require.Equal(t, sameMeaning(a, b), bytes.Equal(sum(a), sum(b)), "%+v\n%+v", a, b)

		written := a // the same, in another zone, with what is below a microsecond, and with the defaults said aloud
		zone := time.FixedZone("", int(offset)*60)
		written.Start, written.End = a.Start.Truncate(time.Microsecond).Add(999).In(zone), a.End.Truncate(time.Microsecond).In(zone)
		written.Quantity = max(a.Quantity, 1)
		written.Metadata = maps.Clone(a.Metadata)
		if written.Metadata == nil {
			written.Metadata = map[string]string{}
		}
		require.Equal(t, sum(a), sum(written))
	})
}
