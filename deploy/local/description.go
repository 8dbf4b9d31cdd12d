package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
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

// write puts the description in its place.
func (d description) write(file string) error {
	text, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		return fmt.Errorf("describe the stack: %w", err)
	}
	return publish(file, append(text, '\n'))
}

// writeEnvironment puts what a shell needs to run the binaries by hand into a file that it can read with its dot.
func writeEnvironment(file string, env environment, bin string) error {
	var text strings.Builder
	text.WriteString("# The stack that runs now, for a shell: . .holdfast/env\n")
	for _, name := range []string{"DATABASE_URL", "NATS_URL", "STRIPE_API_BASE", "STRIPE_API_KEY"} {
		fmt.Fprintf(&text, "export %s=%s\n", name, quoted(env.get(name)))
	}
	for _, name := range []string{"TWO_PERSON_ABOVE", "REQUEST_LIFE", "WORKER_DEAD_AFTER"} { // or a command would go by other rules than the API
		if value := env.get(name); value != "" {
			fmt.Fprintf(&text, "export %s=%s\n", name, quoted(value))
		}
	}
	fmt.Fprintf(&text, "export PATH=%s:\"$PATH\"\n", quoted(bin))
	return publish(file, []byte(text.String()))
}

// quoted is a word that a shell takes as it is.
func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// publish puts a file in its place at once, whole, and for this user's eyes only: it holds secrets.
func publish(file string, text []byte) error {
	partial := file + ".new"
	if err := os.WriteFile(partial, text, 0o600); err != nil {
		return fmt.Errorf("describe the stack: %w", err)
	}
	if err := os.Rename(partial, file); err != nil {
		return fmt.Errorf("describe the stack: %w", err)
	}
	return nil
}
