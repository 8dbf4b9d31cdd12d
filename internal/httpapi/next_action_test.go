package httpapi_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/internal/clients"
	"holdfast/internal/httpapi"
	"holdfast/payments"
)

// prompter answers for the provider, and counts how often it is asked.
type prompter struct {
	asked int
	next  payments.NextAction
	err   error
}

func (p *prompter) Next(context.Context, payments.View) (payments.NextAction, error) {
	p.asked++
	return p.next, p.err
}

func redirect() payments.NextAction {
	return payments.NextAction{Type: payments.ActionRedirect, URL: "https://bank.example/SENTINEL?a=1&b=2", ClientSecret: "pi_1_secret_SENTINEL"}
}

// ask reads a held booking whose payment stands so, with the provider's answer.
func ask(t *testing.T, payment domain.PaymentStatus, p httpapi.Prompter) (*bed, answer) {
	t.Helper()
	id := domain.NewID[domain.BookingID]()
	b := faked(t, fakes{view: func(context.Context, domain.BookingID) (payments.View, error) {
		return payments.View{
			Booking: domain.Booking{ID: id, Status: domain.BookingHeld, CustomerName: "Ada", CustomerEmail: "ada@example.org"},
			Payment: payments.PaymentView{Status: payment},
		}, nil
	}}, func(c *httpapi.Config) { c.Actions = p })
	a := b.get(t, "/v1/bookings/"+id.String())
	require.Equal(t, http.StatusOK, a.status, "%s", a.body)
	require.Equal(t, "no-store", a.header.Get("Cache-Control"))
	return b, a
}

// The owner of a booking reads what the customer has to do, as it is (G9: and nothing of it is logged).
func TestNextActionIsShown(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		next payments.NextAction
		want string
	}{
		"redirect": {redirect(), `{"type": "redirect_to_url", "url": "https://bank.example/SENTINEL?a=1&b=2", "client_secret": "pi_1_secret_SENTINEL"}`},
		"sdk":      {payments.NextAction{Type: payments.ActionSDK, ClientSecret: "pi_1_secret_SENTINEL"}, `{"type": "use_stripe_sdk", "client_secret": "pi_1_secret_SENTINEL"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, a := ask(t, domain.PaymentRequiresAction, &prompter{next: tt.next})
			var shown struct {
				httpapi.Booking

				NextAction     map[string]string `json:"next_action"`
				NextActionHint string            `json:"next_action_hint"`
			}
			strict(t, a.body, &shown)
			require.JSONEq(t, tt.want, fmt.Sprintf(`{"type": %q, %s"client_secret": %q}`, shown.NextAction["type"], urlMember(shown.NextAction), shown.NextAction["client_secret"]))
			require.Empty(t, shown.NextActionHint)
			require.Empty(t, a.header.Values("Retry-After"))
			require.NotContains(t, b.log.String(), "SENTINEL")
		})
	}
}

func urlMember(m map[string]string) string {
	if u, ok := m["url"]; ok {
		return fmt.Sprintf(`"url": %q, `, u)
	}
	return ""
}

// Only where somebody has to act is the provider asked at all.
func TestNextActionIsAskedForOnlyWhereThereIsOne(t *testing.T) {
	t.Parallel()
	for _, status := range domain.PaymentStatuses() {
		t.Run(string(status), func(t *testing.T) {
			t.Parallel()
			p := &prompter{next: redirect()}
			_, a := ask(t, status, p)
			if status == domain.PaymentRequiresAction {
				require.Equal(t, 1, p.asked)
				return
			}
			require.Zero(t, p.asked)
			require.NotContains(t, string(a.body), "next_action")
		})
	}
}

// Where the provider has nothing to say, the booking is shown all the same: with what to do if asking again may help.
func TestNextActionIsMissingForAReason(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		prompter  httpapi.Prompter
		hint      string
		retry     string
		logged    string
		logsLevel string
	}{
		"unread":  {&prompter{err: fmt.Errorf("%w: timed out", payments.ErrActionUnknown)}, "could not be asked in time", "2", "timed out", `"level":"WARN"`},
		"any":     {&prompter{err: errors.New("boom")}, "could not be asked in time", "2", "boom", `"level":"WARN"`},
		"acted":   {&prompter{err: payments.ErrNoAction}, "", "", "", `"level":"INFO"`},
		"no key":  {nil, "no key of the payment provider", "", "", `"level":"INFO"`},
		"present": {&prompter{next: redirect()}, "", "", "", `"level":"INFO"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, a := ask(t, domain.PaymentRequiresAction, tt.prompter)
			var shown httpapi.BookingDetail
			strict(t, a.body, &shown)
			require.Equal(t, name == "present", shown.NextAction != nil)
			require.Contains(t, shown.NextActionHint, tt.hint)
			require.Equal(t, tt.hint == "", shown.NextActionHint == "")
			require.Equal(t, tt.retry, a.header.Get("Retry-After"))
			require.Contains(t, b.log.String(), tt.logsLevel)
			require.Contains(t, b.log.String(), tt.logged)
		})
	}
}

// No other client, and no owner who may not read, learns of it: the provider is not asked (G9).
func TestNextActionIsTheOwners(t *testing.T) {
	t.Parallel()
	p := &prompter{next: redirect()}
	b := setup(t, func(c *httpapi.Config) { c.Actions = p })
	made := b.book(t, "one", b.body())
	require.Equal(t, http.StatusCreated, made.status)
	_, err := b.db.Pool.Exec(t.Context(), `UPDATE payments SET status = 'requires_action', provider_intent_id = 'pi_1'`)
	require.NoError(t, err)
	path := made.header.Get("Location")
	require.Contains(t, string(b.get(t, path).body), "SENTINEL")
	require.Equal(t, 1, p.asked)

	eve := "Authorization: Bearer " + b.newToken(t, "eve", clients.Scopes()...).Reveal()
	b.send(t, http.MethodGet, path, nil, eve).refused(t, http.StatusNotFound, httpapi.CodeNotFound)
	writer := "Authorization: Bearer " + b.newToken(t, "acme", clients.BookingsWrite).Reveal()
	b.send(t, http.MethodGet, path, nil, writer).refused(t, http.StatusForbidden, httpapi.CodeForbidden)
	require.Equal(t, http.StatusUnauthorized, b.send(t, http.MethodGet, path, nil).status)
	replay := b.book(t, "one", b.body())
	require.Equal(t, made.body, replay.body, "a stored answer has no next action")
	require.Equal(t, 1, p.asked)

	_, err = b.db.Pool.Exec(t.Context(), `UPDATE bookings SET status = 'ending', ending_reason = 'expire'`)
	require.NoError(t, err)
	require.NotContains(t, string(b.get(t, path).body), "next_action", "nobody is sent to pay for what is being given up")
	require.Equal(t, 1, p.asked)
}

// Whatever is done with the document but writing it as JSON hides what is in it.
func TestIncident17_NextActionHidesItself(t *testing.T) {
	t.Parallel()
	_, a := ask(t, domain.PaymentRequiresAction, &prompter{next: redirect()})
	var shown httpapi.BookingDetail
	strict(t, a.body, &shown)
	for _, v := range []any{redirect(), *shown.NextAction, shown.NextAction.ClientSecret, shown.NextAction.URL} {
		for _, format := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
			require.NotContains(t, fmt.Sprintf(format, v), "SENTINEL", format)
		}
	}
}
