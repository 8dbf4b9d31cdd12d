package client_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"holdfast/pkg/client"
)

// wish is what the examples book.
var wish = client.BookingRequest{
	ResourceID: "0197f2a4-6d0e-7c3a-9d7e-0a4f3c1b2d5e",
	Start:      time.Date(2031, time.May, 6, 10, 0, 0, 0, time.UTC), End: time.Date(2031, time.May, 6, 12, 0, 0, 0, time.UTC),
	Customer: client.Customer{Name: "Ada", Email: "ada@example.org"}, PaymentMethod: "pm_card_visa",
}

// stub stands for the API: it loses the first answer to each key, and replays the second.
func stub(refusal string) *httptest.Server {
	seen := map[string]bool{}
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key := r.Header.Get("Idempotency-Key")
		switch {
		case refusal != "":
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusConflict)
			_, _ = fmt.Fprintf(w, `{"code":%q,"detail":"No place is free from 10:00 to 12:00."}`, refusal)
		case !seen[key]:
			seen[key] = true
			panic(http.ErrAbortHandler)
		default:
			w.Header().Set("Idempotency-Replayed", "true")
			w.WriteHeader(http.StatusCreated)
			_, _ = fmt.Fprint(w, `{"id":"b-1","status":"held"}`)
		}
	}))
}

// The first answer is lost; the booking was made all the same, and the retry learns of it.
func ExampleClient_CreateBooking() {
	api := stub("")
	defer api.Close()
	c, err := client.New(client.Config{URL: api.URL, Token: "hf_example"})
	if err != nil {
		fmt.Println(err)
		return
	}
	key := client.NewKey() // store it with the order before the call
	made, err := c.CreateBooking(context.Background(), key, wish)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(made.Booking.ID, made.Booking.Status, "replayed:", made.Replayed, "tries:", made.Tries)
	// Output: b-1 held replayed: true tries: 2
}

// A refusal is a *Problem. The key is spent with it: another slot is another intention.
func ExampleProblem() {
	api := stub("slot_unavailable")
	defer api.Close()
	c, err := client.New(client.Config{URL: api.URL, Token: "hf_example"})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = c.CreateBooking(context.Background(), "", wish)
	if p, ok := errors.AsType[*client.Problem](err); ok && p.Code == client.CodeSlotUnavailable {
		fmt.Println(p.Detail)
	}
	// Output: No place is free from 10:00 to 12:00.
}

// Whose time is over before the answer keeps the key, and goes on later: the booking may exist.
func ExampleUnknownError() {
	api := stub("")
	defer api.Close()
	c, err := client.New(client.Config{URL: api.URL, Token: "hf_example", MinBackoff: time.Hour, MaxBackoff: time.Hour})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = c.CreateBooking(context.Background(), "order-7", wish)
	if doubt, ok := errors.AsType[*client.UnknownError](err); ok {
		fmt.Println("unknown after", doubt.Tries, "try")
		made, err := c.CreateBooking(context.Background(), doubt.Key, wish)
		fmt.Println(made.Booking.ID, made.Replayed, err)
	}
	// Output:
	// unknown after 1 try
	// b-1 true <nil>
}
