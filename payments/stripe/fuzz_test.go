package stripe

import (
	"bytes"
	"io"
	"math"
	"net/http"
	"net/http/httptrace"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/payments"
)

// answering is a transport that gives one answer, and traces the request as written like net/http.
type answering struct {
	status int
	body   string
	header http.Header
}

func (a answering) RoundTrip(r *http.Request) (*http.Response, error) {
	httptrace.ContextClientTrace(r.Context()).WroteHeaders()
	return &http.Response{
		StatusCode: a.status, Header: a.header, Body: io.NopCloser(strings.NewReader(a.body)), Request: r,
	}, nil
}

// FuzzClassify: whatever comes back, a send is not said to have been executed without a whole intent, nothing of the body
// reaches the detail, and nothing panics. The answer goes through the SDK as one from the wire does.
func FuzzClassify(f *testing.F) {
	for _, body := range []string{
		wholeIntent, ``, `{}`, `null`, `"pi_3Wire"`, `<html>`, `{"error": {}}`, errorBody(invalidType), errorBody(`"type": "idempotency_error"`),
		errorBody(`"type": "card_error", "code": "card_declined"` + withIntent),
		errorBody(invalidType + `, "code": "payment_intent_unexpected_state"` + withIntent),
		errorBody(invalidType + `, "code": "lock_timeout"`),
	} {
		for _, status := range []int{0, 200, 204, 302, 400, 401, 402, 404, 409, 429, 500, 503} {
			f.Add(status, []byte(body), "true", "req_1")
		}
	}
	f.Fuzz(func(t *testing.T, status int, body []byte, replayed, requestID string) {
		header := http.Header{"Idempotent-Replayed": {replayed}, "Request-Id": {requestID}}
		if status < 0 || status > 999 {
			status = 200 + (status%300+300)%300
		}
		g := newGateway(Config{APIKey: "sk_test_fuzz"}, answering{status, string(body), header})
		out := g.Send(t.Context(), confirm())

		whole := bytes.Contains(body, []byte(intentID))
		switch out.Class {
		case payments.Executed:
			require.True(t, status >= 200 && status <= 299 && whole)
			require.NotNil(t, out.Intent)
		case payments.KnownState:
			require.Equal(t, 400, status)
			require.NotNil(t, out.Intent)
		case payments.Declined:
			require.Equal(t, 402, status)
		case payments.Rejected:
			require.Contains(t, []int{400, 404}, status)
		case payments.KeyMismatch:
			require.Equal(t, 400, status)
		case payments.Busy:
			require.Contains(t, []int{409, 429}, status)
		case payments.NotExecuted:
			require.Contains(t, []int{401, 403, 429}, status)
		case payments.Unknown:
			require.Nil(t, out.Intent)
		}
		if out.Intent != nil {
			require.Equal(t, intentID, out.Intent.ID)
			require.NotEmpty(t, out.Intent.Status)
		}
		require.Equal(t, status, out.HTTPStatus)
		require.Equal(t, replayed == "true", out.Replayed)
		require.Less(t, len(out.Detail), 250)
		if text := strings.TrimSpace(string(body)); len(text) > 3 { // a body as short as a status may be equal to it
			require.NotContains(t, out.Detail, text)
		}
		require.Equal(t, out.Code, token(out.Code))
		require.Equal(t, out.RequestID, token(out.RequestID))
	})
}

// FuzzReads: a listing or an intent is whole, or there is an error.
func FuzzReads(f *testing.F) {
	for _, body := range []string{wholeIntent, listBody(false), listBody(true), listBody(false, chargeBody("ch_1", intentID)), `{}`, `null`} {
		f.Add(200, []byte(body))
	}
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		g := newGateway(Config{APIKey: "sk_test_fuzz"}, answering{status, string(body), http.Header{}})
		hurry(t, g)
		if intent, err := g.Intent(t.Context(), intentID); err == nil {
			require.Equal(t, 200, status)
			require.Equal(t, intentID, intent.ID)
		}
		charges, err := g.Charges(t.Context(), intentID)
		if err != nil {
			require.Nil(t, charges)
			return
		}
		require.Equal(t, 200, status)
		require.Contains(t, string(body), "list")
	})
}

// FuzzScale: an amount goes to the provider and comes back as it was, off by no factor but those in the documentation,
// and never as nothing or less; whatever cannot do so is refused.
func FuzzScale(f *testing.F) {
	for _, code := range []string{"EUR", "JPY", "UGX", "ISK", "MGA", "KWD", "IDR", "HUF", "TWD", "IQD", "CLF", "eur", "", "XXX", "EU\x00", "uſd"} {
		for _, amount := range []int64{0, 1, -1, 10, 100, 5124, 5120, 999_999, 1_000_000, 99_999_999, 100_000_000, 999_999_999_999, math.MaxInt64, math.MinInt64} {
			f.Add(amount, code)
		}
	}
	plain := []string{"EUR", "USD", "JPY", "KRW", "HUF", "TWD", "GBP", "XOF"}
	f.Fuzz(func(t *testing.T, amount int64, code string) {
		m := domain.Money{Amount: amount, Currency: code}
		sent, err := toProvider(m)
		if err == nil {
			require.Positive(t, sent)
			switch code {
			case "UGX", "ISK":
				require.Equal(t, amount, sent/100)
				require.Zero(t, sent%100)
			case "MGA":
				require.Equal(t, amount/100, sent)
				require.Zero(t, amount%100)
			case "BHD", "JOD", "KWD", "OMR", "TND":
				require.Equal(t, amount, sent)
				require.Zero(t, sent%10)
			default:
				require.Equal(t, amount, sent)
			}
			digits := len(strconv.FormatInt(sent, 10))
			require.True(t, digits <= 8 || digits <= 12 && code == "IDR", sent)
			back, err := fromProvider(sent, strings.ToLower(code))
			require.NoError(t, err)
			require.Equal(t, m, back)
		} else {
			require.Zero(t, sent)
			require.False(t, slices.Contains(plain, code) && amount > 0 && amount <= 99_999_999, "refused for nothing: %v", err)
		}

		got, err := fromProvider(amount, code)
		if err != nil {
			require.Zero(t, got)
			return
		}
		require.Equal(t, amount < 0, got.Amount < 0)
		require.Equal(t, amount == 0, got.Amount == 0)
		if again, err := toProvider(got); err == nil {
			require.Equal(t, amount, again)
		}
	})
}
