package main

import (
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"holdfast/docs"
	"holdfast/domain"
	"holdfast/internal/cli"
	"holdfast/internal/clients"
	"holdfast/internal/console"
	"holdfast/internal/postgres"
)

// consoling is how the operators' and finance's pages are served.
type consoling struct {
	Console        string        `default:"on" enum:"on,off" help:"on: the operators' pages are served at /console. off: they are not." setting:"CONSOLE"`
	ConsoleSession time.Duration `default:"8h" help:"How long somebody stays signed in to the console, at most." setting:"CONSOLE_SESSION"`
	ConsoleIdle    time.Duration `default:"30m" help:"How long without looking at another page; pages that refresh themselves do not count." setting:"CONSOLE_IDLE"`
	ConsoleSignIns int           `default:"20" help:"Attempts to sign in, from one address in a minute." setting:"CONSOLE_SIGN_INS"`
	OIDCIssuer     string        `help:"Of the identity provider by which operators may sign in, such as https://id.example.org; set all OIDC_ settings or none. Whoever it vouches for by a verified e-mail address needs a client of that name with a valid token of an operator." setting:"OIDC_ISSUER" placeholder:"URL"`
	OIDCClientID   string        `help:"As which the console is known to it." setting:"OIDC_CLIENT_ID"`
	OIDCRedirect   string        `help:"The public address of the console, with /console/oidc/callback behind it." setting:"OIDC_REDIRECT_URL" placeholder:"URL"`
	OIDCSecret     domain.Secret `kong:"-"` // OIDC_CLIENT_SECRET, in the environment only
	ConsoleRefresh time.Duration `default:"5s" help:"Between two looks of a page that refreshes itself." setting:"CONSOLE_REFRESH"`
}

func (s *consoling) configure(getenv func(string) string, p *cli.Problems) {
	s.OIDCSecret = domain.Secret(getenv("OIDC_CLIENT_SECRET"))
	if given := []bool{s.OIDCIssuer != "", s.OIDCClientID != "", s.OIDCRedirect != "", s.OIDCSecret != ""}; slices.Contains(given, true) {
		if slices.Contains(given, false) {
			p.Add("OIDC_ISSUER, OIDC_CLIENT_ID, OIDC_CLIENT_SECRET and OIDC_REDIRECT_URL go together: set all or none")
		}
		for name, address := range map[string]string{"OIDC_ISSUER": s.OIDCIssuer, "OIDC_REDIRECT_URL": s.OIDCRedirect} {
			if u, err := url.Parse(address); address != "" && (err != nil || u.Host == "" || !strings.HasPrefix(u.Scheme, "http")) {
				p.Add("%s is not a URL such as https://example.org", name)
			}
		}
	}
	for name, d := range map[string]time.Duration{"CONSOLE_SESSION": s.ConsoleSession, "CONSOLE_IDLE": s.ConsoleIdle} {
		if d <= 0 {
			p.Add("%s: %s is not more than 0", name, d)
		}
	}
	if s.ConsoleRefresh < time.Second {
		p.Add("CONSOLE_REFRESH: %s is not at least 1s", s.ConsoleRefresh)
	}
	if s.ConsoleSignIns < 1 {
		p.Add("CONSOLE_SIGN_INS: %d is not at least 1", s.ConsoleSignIns)
	}
}

// build makes the pages, or nothing where they are off.
func (s *consoling) build(pool *pgxpool.Pool, desk console.Desk, books console.Books, logger *slog.Logger) (http.Handler, error) {
	if s.Console == "off" {
		return nil, nil //nolint:nilnil // off is no error
	}
	var vouching *console.OIDC
	if s.OIDCIssuer != "" {
		vouching = &console.OIDC{Issuer: s.OIDCIssuer, ClientID: s.OIDCClientID, ClientSecret: s.OIDCSecret, RedirectURL: s.OIDCRedirect}
	}
	return console.New(console.Config{
		Desk: desk, Books: books, Clients: clients.New(pool),
		Sessions:  clients.NewSessions(pool, clients.SessionLimits{Life: s.ConsoleSession, Idle: s.ConsoleIdle}),
		Transient: func(err error) bool { return postgres.IsTransient(err) || postgres.IsUnavailable(err) },
		Runbook:   docs.Runbook, OIDC: vouching, SignInsPerMinute: s.ConsoleSignIns, Refresh: s.ConsoleRefresh,
	}, logger)
}
