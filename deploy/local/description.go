package main

import (
	"encoding/json"
	"fmt"
	"os"
)

// description is stack.json: all that a person or a test needs to use the stack.
type description struct {
	APIURL      string            `json:"api_url"`
	MetricsURL  string            `json:"metrics_url"` // the api's
	NATSURL     string            `json:"nats_url"`
	DatabaseURL string            `json:"database_url"`
	StripeURL   string            `json:"stripe_url"`
	ConsoleURL  string            `json:"console_url"`
	Tokens      map[string]string `json:"tokens"`
	Resources   []resource        `json:"resources"`
	// PIDs has no entry for what was not started here.
	PIDs map[string]int `json:"pids"`
	// MetricsURLs has one entry for each binary.
	MetricsURLs map[string]string `json:"metrics_urls"`
}

// resource is what the stack can book, as `api resource create --json` prints it.
type resource struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	TimeZone    string `json:"time_zone"`
	UnitMinutes int    `json:"unit_minutes"`
	Price       int64  `json:"price"`
	Currency    string `json:"currency"`
	Places      int    `json:"places"`
}

// write puts the description in its place at once, whole, and for this user's eyes only: it holds tokens.
func (d description) write(file string) error {
	text, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		return fmt.Errorf("describe the stack: %w", err)
	}
	partial := file + ".new"
	if err := os.WriteFile(partial, append(text, '\n'), 0o600); err != nil {
		return fmt.Errorf("describe the stack: %w", err)
	}
	if err := os.Rename(partial, file); err != nil {
		return fmt.Errorf("describe the stack: %w", err)
	}
	return nil
}
