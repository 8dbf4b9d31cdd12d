package stripe

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/payments"
)

const (
	oldSecret, newSecret = domain.Secret("whsec_old"), domain.Secret("whsec_new")
	signedAt             = 1_700_000_000
)

const wholeEvent = `{"id":"evt_3One","object":"event","api_version":"2023-10-16","created":1699999990,"livemode":true,
	"type":"payment_intent.succeeded","request":{"id":"req_1","idempotency_key":"hf:p:confirm:1"},
	"data":{"object":{"id":"pi_3One","object":"payment_intent","status":"succeeded","client_secret":"pi_3One_secret_x",
	"metadata":{"booking_id":"b-1","payment_id":"p-1"}}}}`

func signatureOf(secret domain.Secret, at int64, body string) string {
	mac := hmac.New(sha256.New, []byte(secret.Reveal()))
	fmt.Fprintf(mac, "%d.%s", at, body)
	return hex.EncodeToString(mac.Sum(nil))
}

func header(at int64, signatures ...string) string {
	h := fmt.Sprintf("t=%d", at)
	for _, s := range signatures {
		h += ",v1=" + s
	}
	return h
}

func verifierAt(tb testing.TB, at int64, secrets ...domain.Secret) *Verifier {
	tb.Helper()
	v, err := NewVerifier(secrets)
	require.NoError(tb, err)
	v.now = func() time.Time { return time.Unix(at, 0) }
	return v
}

// Incident 23: a secret that is being replaced. Either side may know the new one first, and the order says nothing.
func TestIncident23_EverySecretIsTriedOnEverySignature(t *testing.T) {
	t.Parallel()
	older, newer := signatureOf(oldSecret, signedAt, wholeEvent), signatureOf(newSecret, signedAt, wholeEvent)
	wrong := signatureOf("whsec_of_somebody_else", signedAt, wholeEvent)
	for name, tc := range map[string]struct {
		secrets    []domain.Secret
		signatures []string
		want       error
	}{
		"one of each":                          {[]domain.Secret{oldSecret}, []string{older}, nil},
		"two signatures, the second fits":      {[]domain.Secret{oldSecret}, []string{newer, older}, nil},
		"two signatures, the first fits":       {[]domain.Secret{oldSecret}, []string{older, newer}, nil},
		"two secrets, the second fits":         {[]domain.Secret{newSecret, oldSecret}, []string{older}, nil},
		"two secrets, the first fits":          {[]domain.Secret{oldSecret, newSecret}, []string{older}, nil},
		"two of each, crossed":                 {[]domain.Secret{newSecret, oldSecret}, []string{older, newer}, nil},
		"after a wrong one and a broken one":   {[]domain.Secret{oldSecret}, []string{wrong, "zz", "", older}, nil},
		"upper case":                           {[]domain.Secret{oldSecret}, []string{strings.ToUpper(older)}, nil},
		"somebody else's":                      {[]domain.Secret{oldSecret, newSecret}, []string{wrong}, payments.ErrSignature},
		"cut short":                            {[]domain.Secret{oldSecret}, []string{older[:62]}, payments.ErrSignature},
		"none":                                 {[]domain.Secret{oldSecret}, nil, payments.ErrSignature},
		"a secret that is the other's, no fit": {[]domain.Secret{newSecret}, []string{older}, payments.ErrSignature},
	} {
		event, err := verifierAt(t, signedAt, tc.secrets...).Verify(header(signedAt, tc.signatures...), []byte(wholeEvent))
		require.ErrorIs(t, err, tc.want, name)
		if tc.want == nil {
			require.Equal(t, "evt_3One", event.ID, name)
		}
	}
}

// Incident 23: a header in other spellings, and one that leaves open what was signed.
func TestIncident23_TheHeaderIsReadAsSigned(t *testing.T) {
	t.Parallel()
	s := signatureOf(oldSecret, signedAt, wholeEvent)
	v := verifierAt(t, signedAt, oldSecret)
	for h, want := range map[string]error{
		fmt.Sprintf("v1=%s,t=%d", s, signedAt):                nil,
		fmt.Sprintf("t=%d, v1=%s", signedAt, s):               nil,
		fmt.Sprintf("t=%d,v0=%s,v9=x,,v1=%s", signedAt, s, s): nil,
		fmt.Sprintf("t=%d,v0=%s", signedAt, s):                payments.ErrSignature,
		fmt.Sprintf("t=%d,t=%d,v1=%s", signedAt, signedAt, s): payments.ErrSignature,
		fmt.Sprintf("t=+%d,v1=%s", signedAt, s):               payments.ErrSignature,
		"v1=" + s:                                             payments.ErrSignature,
		"t=,v1=" + s:                                          payments.ErrSignature,
		"":                                                    payments.ErrSignature,
		s:                                                     payments.ErrSignature,
	} {
		_, err := v.Verify(h, []byte(wholeEvent))
		require.ErrorIs(t, err, want, h)
	}
}

// Incident 23: 300 s either way are taken, more are not; the SDK looks one way only.
func TestIncident23_TheSignaturesAge(t *testing.T) {
	t.Parallel()
	h := header(signedAt, signatureOf(oldSecret, signedAt, wholeEvent))
	for skew, want := range map[int64]error{
		0: nil, 299: nil, -299: nil, 300: nil, -300: nil,
		301: payments.ErrSignatureAge, -301: payments.ErrSignatureAge, 86400: payments.ErrSignatureAge, -86400: payments.ErrSignatureAge,
	} {
		_, err := verifierAt(t, signedAt+skew, oldSecret).Verify(h, []byte(wholeEvent))
		require.ErrorIs(t, err, want, skew)
	}
	_, err := verifierAt(t, signedAt, oldSecret).Verify(strings.Replace(h, fmt.Sprint(signedAt), fmt.Sprint(signedAt+1), 1), []byte(wholeEvent))
	require.ErrorIs(t, err, payments.ErrSignature, "the time is signed, too")
}

// Incident 23: the bytes are what is signed. Every byte counts, and none is rewritten first.
func TestIncident23_TheBytesAreWhatIsSigned(t *testing.T) {
	t.Parallel()
	v := verifierAt(t, signedAt, oldSecret)
	for _, body := range []string{
		wholeEvent, " \n\t" + wholeEvent + "\r\n", strings.ReplaceAll(wholeEvent, ":", " :\u0020 "),
		strings.Replace(wholeEvent, `"status":"succeeded"`, `"description":"Zimmer für Müller – 予約 \u00e9 \ud83d\ude00"`, 1),
		strings.Replace(wholeEvent, `"req_1"`, "\"\xff\xfe\"", 1),
	} {
		h := header(signedAt, signatureOf(oldSecret, signedAt, body))
		event, err := v.Verify(h, []byte(body))
		require.NoError(t, err, body)
		require.Equal(t, "pi_3One", event.IntentID, body)
		for _, altered := range []string{body + " ", body[1:], strings.Replace(body, "pi_3One", "pi_3Two", 1), strings.ToUpper(body), ""} {
			_, err := v.Verify(h, []byte(altered))
			require.ErrorIs(t, err, payments.ErrSignature)
		}
	}
}

// Incident 23: the version of an event is set in a dashboard. Any is taken, and none at all.
func TestIncident23_AnyVersionIsTaken(t *testing.T) {
	t.Parallel()
	for _, version := range []string{`"2010-01-01"`, `"2023-10-16"`, `"2026-08-26.dahlia"`, `"9999-12-31"`, `""`, `null`, `{"a":[1]}`} {
		body := strings.Replace(wholeEvent, `"2023-10-16"`, version, 1)
		event, err := verifierAt(t, signedAt, oldSecret).Verify(header(signedAt, signatureOf(oldSecret, signedAt, body)), []byte(body))
		require.NoError(t, err, version)
		require.Equal(t, payments.Event{
			ID: "evt_3One", Type: "payment_intent.succeeded", Created: time.Unix(1699999990, 0).UTC(), Livemode: true, Key: "hf:p:confirm:1",
			ObjectType: "payment_intent", ObjectID: "pi_3One", IntentID: "pi_3One", BookingID: "b-1", PaymentID: "p-1",
		}, event)
	}
}

// Only an id and a type are asked for; whatever else has another shape than expected is left out.
func TestEventsOfOtherShapes(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]payments.Event{
		`{"id":"evt_1","type":"a.b"}`: {ID: "evt_1", Type: "a.b"},
		`{"id":"evt_1","type":"charge.succeeded","request":"req_1","data":{"object":{"id":"ch_1","object":"charge","payment_intent":{"id":"pi_1"},"metadata":null}}}`: {
			ID: "evt_1", Type: "charge.succeeded", ObjectType: "charge", ObjectID: "ch_1", IntentID: "pi_1",
		},
		`{"id":"evt_1","type":"charge.failed","data":{"object":{"id":"ch_1","object":"charge","payment_intent":"pi_1","metadata":{"booking_id":7,"payment_id":"p\u0000"}}}}`: {
			ID: "evt_1", Type: "charge.failed", ObjectType: "charge", ObjectID: "ch_1", IntentID: "pi_1",
		},
		`{"id":"evt_1","object":"v2.core.event","type":"v1.billing.meter","created":"2023-11-14T22:13:20.000Z","related_object":{"id":"x"}}`: {
			ID: "evt_1", Type: "v1.billing.meter", Created: time.Unix(signedAt, 0).UTC(),
		},
		`{"id":"evt_1","type":"a","created":-1,"livemode":"yes","request":{"idempotency_key":"ü"},"data":{"object":"pi_1"}}`: {ID: "evt_1", Type: "a"},
	} {
		event, err := readEvent([]byte(body))
		require.NoError(t, err, body)
		require.Equal(t, want, event, body)
	}
	for _, body := range []string{``, `null`, `[]`, `"evt_1"`, `{}`, `{"id":"evt_1"}`, `{"type":"a"}`, `{"id":"evt 1","type":"a"}`, `{"id":"evt_1","type":"a b"}`, wholeEvent + `{}`, wholeEvent[:50]} {
		_, err := readEvent([]byte(body))
		require.Error(t, err, body)
		_, err = verifierAt(t, signedAt, oldSecret).Verify(header(signedAt, signatureOf(oldSecret, signedAt, body)), []byte(body))
		require.ErrorIs(t, err, payments.ErrEventUnreadable, body)
	}
}

// Without a secret, or with an empty one, anybody could sign (G9).
func TestVerifierNeedsSecrets(t *testing.T) {
	t.Parallel()
	for _, secrets := range [][]domain.Secret{nil, {}, {""}, {oldSecret, ""}} {
		_, err := NewVerifier(secrets)
		require.Error(t, err)
	}
	require.NotContains(t, fmt.Sprintf("%+v %#v", verifierAt(t, 0, oldSecret), verifierAt(t, 0, oldSecret)), oldSecret.Reveal())
}

// FuzzVerify: nothing panics, nothing is accepted but what this secret has signed, and what is accepted can be stored.
func FuzzVerify(f *testing.F) {
	for _, body := range []string{wholeEvent, `{}`, ``, `null`, `[]`, `{"id":"evt_1","type":"a.b","created":1e400}`, "\xff", `{"id":"evt_1","type":"\u0000"}`} {
		f.Add(header(signedAt, signatureOf(oldSecret, signedAt, body)), []byte(body))
		f.Add(header(signedAt), []byte(body))
		f.Add("t=1,t=2,v1=,v1==,=,v1=00", []byte(body))
	}
	f.Fuzz(func(t *testing.T, h string, body []byte) {
		v := verifierAt(t, signedAt, oldSecret)
		if event, err := v.Verify(h, body); err == nil {
			require.Contains(t, strings.ToLower(h), signatureOf(oldSecret, signedOf(h), string(body)), "accepted without a signature")
			storable(t, event)
		}
		// The same body, rightly signed, reaches the part behind the signature.
		event, err := v.Verify(header(signedAt, signatureOf(oldSecret, signedAt, string(body))), body)
		if err != nil {
			require.ErrorIs(t, err, payments.ErrEventUnreadable)
			return
		}
		storable(t, event)
	})
}

// signedOf is the time that a header says it was signed at.
func signedOf(h string) int64 {
	var at int64
	for part := range strings.SplitSeq(h, ",") {
		if n, err := fmt.Sscanf(strings.TrimSpace(part), "t=%d", &at); n == 1 && err == nil {
			return at
		}
	}
	return 0
}

// storable asserts that nothing of an event can trouble a database, a log or a terminal.
func storable(t *testing.T, e payments.Event) {
	t.Helper()
	require.NotEmpty(t, e.ID)
	require.NotEmpty(t, e.Type)
	require.False(t, e.Created.IsZero())
	for _, s := range []string{e.ID, e.Type, e.Key, e.ObjectType, e.ObjectID, e.IntentID, e.BookingID, e.PaymentID} {
		require.LessOrEqual(t, len(s), 255)
		require.False(t, strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' }), "%q", s)
	}
}
