package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

const (
	callLimit   = 30 * time.Second
	answerLimit = 16 << 20
)

// apiClient is a customer of Holdfast.
type apiClient struct{ base, token string }

// booking is as much of the API's booking as the story needs.
type booking struct {
	ID      string `json:"id"`
	Status  string `json:"status"`
	Payment struct {
		Status string `json:"status"`
	} `json:"payment"`
	Replayed bool `json:"-"`
}

func newAPIClient(d description) *apiClient {
	return &apiClient{base: d.APIURL, token: d.Tokens["customer"]}
}

func (c *apiClient) book(ctx context.Context, key, body string) (booking, error) {
	var made booking
	headers, err := call(ctx, http.MethodPost, c.base+"/v1/bookings", body, &made, map[string]string{
		"Authorization": "Bearer " + c.token, "Idempotency-Key": key,
	})
	made.Replayed = headers.Get("Idempotency-Replayed") == "true"
	return made, err
}

func (c *apiClient) booking(ctx context.Context, id string) (booking, error) {
	var found booking
	_, err := call(ctx, http.MethodGet, c.base+"/v1/bookings/"+id, "", &found, map[string]string{
		"Authorization": "Bearer " + c.token,
	})
	return found, err
}

// simulator is the control surface of the simulated Stripe.
type simulator struct{ base string }

type fault struct {
	Operation string `json:"operation"`
	Times     int    `json:"times"`
	Fault     string `json:"fault"`
}

// charge is one charge of the provider's ledger: the truth about money.
type charge struct {
	ID            string            `json:"id"`
	PaymentIntent string            `json:"payment_intent"`
	Amount        int64             `json:"amount"`
	Currency      string            `json:"currency"`
	Status        string            `json:"status"`
	Refunded      int64             `json:"amount_refunded"`
	Metadata      map[string]string `json:"metadata"`
}

// wireEntry is one request that reached the provider.
type wireEntry struct {
	Operation      string `json:"operation"`
	Object         string `json:"object"`
	IdempotencyKey string `json:"idempotency_key"`
	Executed       bool   `json:"executed"`
	Replayed       bool   `json:"replayed"`
	Status         int    `json:"status"`
	Fault          string `json:"fault"`
}

// fate says in words what became of a request.
func (e wireEntry) fate() string {
	switch {
	case e.IdempotencyKey == "":
		return fmt.Sprintf("read, answered %d", e.Status)
	case e.Fault != "" && e.Executed:
		return "carried out, answer lost"
	case e.Fault != "":
		return "not carried out again, answer lost"
	case e.Replayed:
		return "answered from the key's memory"
	case e.Executed:
		return "carried out"
	default:
		return "refused"
	}
}

func newSimulator(d description) *simulator { return &simulator{base: d.StripeURL + "/_sim"} }

func (s *simulator) arm(ctx context.Context, f fault) error {
	body, err := json.Marshal(f)
	if err != nil {
		return err
	}
	_, err = call(ctx, http.MethodPost, s.base+"/faults", string(body), nil, nil)
	return err
}

// disarm removes all faults.
func (s *simulator) disarm(ctx context.Context) error {
	_, err := call(ctx, http.MethodDelete, s.base+"/faults", "", nil, nil)
	return err
}

func (s *simulator) charges(ctx context.Context) ([]charge, error) {
	var ledger struct {
		Charges []charge `json:"charges"`
	}
	_, err := call(ctx, http.MethodGet, s.base+"/ledger", "", &ledger, nil)
	return ledger.Charges, err
}

func (s *simulator) journal(ctx context.Context) ([]wireEntry, error) {
	var entries []wireEntry
	_, err := call(ctx, http.MethodGet, s.base+"/journal?after=0", "", &entries, nil)
	return entries, err
}

// call makes one HTTP request and reads the JSON it is answered with, unless into is nil. Another status than 2xx is an error that quotes
// the answer.
func call(ctx context.Context, method, url, body string, into any, headers map[string]string) (http.Header, error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	for name, value := range headers {
		request.Header.Set(name, value)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(response.Body, answerLimit))
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", method, url, err)
	}
	if response.StatusCode/100 != 2 {
		return nil, fmt.Errorf("%s %s: %s: %s", method, url, response.Status, text)
	}
	if into == nil {
		return response.Header, nil
	}
	if err := json.Unmarshal(text, into); err != nil {
		return nil, fmt.Errorf("%s %s: %w", method, url, err)
	}
	return response.Header, nil
}
