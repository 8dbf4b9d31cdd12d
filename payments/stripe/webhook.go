package stripe

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strconv"
	"strings"
	"time"

	"holdfast/domain"
	"holdfast/payments"
)

// signatureAge is how far a signature's time may be from ours, either way: beyond that it may be a replay.
const signatureAge = 300 // seconds

// Verifier tells Stripe's deliveries from everybody else's. It is safe for concurrent use.
//
// The SDK's own check is not used: it refuses every event whose API version is not the SDK's, and that version is set in
// a dashboard; and it takes signatures from the future.
type Verifier struct {
	secrets []func() string // functions, since fmt prints a field that is not exported without asking its String method
	now     func() time.Time
}

// NewVerifier takes the signing secrets of the endpoint. There are several while one replaces another.
func NewVerifier(secrets []domain.Secret) (*Verifier, error) {
	if len(secrets) == 0 {
		return nil, errors.New("a webhook endpoint needs a signing secret")
	}
	v := &Verifier{now: time.Now}
	for _, s := range secrets {
		if s == "" {
			return nil, errors.New("an empty signing secret would let anybody sign")
		}
		v.secrets = append(v.secrets, s.Reveal)
	}
	return v, nil
}

// Verify returns the event in a delivery: the header Stripe-Signature and the body as it came, byte for byte. Whatever
// the event's API version, it is taken. The error is payments.ErrSignature, ErrSignatureAge or ErrEventUnreadable.
func (v *Verifier) Verify(signature string, body []byte) (payments.Event, error) {
	signed, signatures, ok := parseSignature(signature)
	if !ok || !v.signedByUs(signed, body, signatures) {
		return payments.Event{}, payments.ErrSignature
	}
	at, err := strconv.ParseInt(signed, 10, 64)
	if err != nil {
		return payments.Event{}, payments.ErrSignature
	}
	if now := v.now().Unix(); at < now-signatureAge || at > now+signatureAge {
		return payments.Event{}, payments.ErrSignatureAge
	}
	event, err := readEvent(body)
	if err != nil {
		return payments.Event{}, payments.ErrEventUnreadable
	}
	if event.Created.IsZero() {
		event.Created = time.Unix(at, 0).UTC()
	}
	return event, nil
}

// signedByUs tries every secret on every signature: while a secret is being replaced, either side may be ahead.
func (v *Verifier) signedByUs(at string, body []byte, signatures [][]byte) bool {
	fits := false
	for _, secret := range v.secrets {
		mac := hmac.New(sha256.New, []byte(secret()))
		_, _ = mac.Write([]byte(at + ".")) // a hash never fails
		_, _ = mac.Write(body)
		want := mac.Sum(nil)
		for _, signature := range signatures {
			fits = hmac.Equal(signature, want) || fits
		}
	}
	return fits
}

// parseSignature reads t=…,v1=…,v1=…: the time as it was signed, and the signatures of the one scheme that counts.
// Unknown schemes are passed over. Two times would leave open which was meant.
func parseSignature(header string) (at string, signatures [][]byte, ok bool) {
	times := 0
	for part := range strings.SplitSeq(header, ",") {
		scheme, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		switch scheme {
		case "t":
			at = value
			times++
		case "v1":
			if signature, err := hex.DecodeString(value); err == nil && len(signature) == sha256.Size {
				signatures = append(signatures, signature)
			}
		}
	}
	return at, signatures, times == 1 && len(signatures) > 0
}
