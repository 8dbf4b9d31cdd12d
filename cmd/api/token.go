package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"holdfast/domain"
	"holdfast/internal/cli"
	"holdfast/internal/clients"
)

type tokenCommands struct {
	Create tokenCreateCommand `cmd:"" help:"Make a token; it is shown this once."`
	List   tokenListCommand   `cmd:"" help:"List the tokens; what they open is not stored and cannot be shown."`
	Revoke tokenRevokeCommand `cmd:"" help:"End a token at once."`
}

type tokenCreateCommand struct {
	cli.Database `kong:"-"`

	Client    string        `required:"" placeholder:"NAME" help:"The client that the token acts for; made if it does not exist. Clients do not see each other's bookings. Give every operator a client of their own, such as their e-mail address: the audit names the client, and nobody approves what their own client has asked for."`
	Scope     []string      `required:"" placeholder:"SCOPE" help:"What the token allows: bookings:read, bookings:write, finance; operator, or parts of it: operator:read, and operator:replay, :republish, :resolve, :refund, :discard, :pause, each of which may read, too."`
	ExpiresIn time.Duration `default:"2160h" help:"How long it is valid, at most ten years (default ${default}, 90 days)."`
	Label     string        `placeholder:"TEXT" help:"A note of your own, such as where the token is used."`
	JSON      bool          `name:"json" help:"Print JSON, for scripts."`

	scopes []clients.Scope
}

// Configure reads the environment and checks the scopes.
func (c *tokenCreateCommand) Configure(getenv func(string) string, p *cli.Problems) {
	c.Database.Configure(getenv, p)
	var err error
	if c.scopes, err = clients.ParseScopes(c.Scope); err != nil {
		p.Add("--scope: %s", err)
	}
}

type createdToken struct {
	Token     string          `json:"token"`
	ID        clients.TokenID `json:"id"`
	ClientID  domain.ClientID `json:"client_id"`
	Client    string          `json:"client"`
	Scopes    []clients.Scope `json:"scopes"`
	ExpiresAt domain.Instant  `json:"expires_at"`
}

// Run makes the token.
func (c *tokenCreateCommand) Run(ctx context.Context, io cli.IO) error {
	var made clients.Created
	err := once(ctx, c.Database, func(ctx context.Context, pool *pgxpool.Pool) (err error) {
		made, err = clients.New(pool).Create(ctx, c.Client, c.scopes, c.Label, c.ExpiresIn)
		return err
	})
	if err != nil {
		return err
	}
	if c.JSON {
		return cli.PrintJSON(io.Out, createdToken{
			Token: made.Token.Reveal(), ID: made.ID, ClientID: made.ClientID, Client: made.Client, Scopes: made.Scopes,
			ExpiresAt: domain.Instant(made.ExpiresAt),
		})
	}
	_, err = fmt.Fprintf(io.Out, "%s\n\nKeep it now: it is not stored and cannot be shown again.\nclient   %s\nscopes   %s\nexpires  %s\nrevoke   api token revoke %s\n",
		made.Token.Reveal(), cli.Printable(made.Client), join(made.Scopes), day(made.ExpiresAt), made.ID)
	return err
}

type tokenListCommand struct {
	cli.Database `kong:"-"`

	JSON bool `name:"json" help:"Print JSON, for scripts."`
}

type listedToken struct {
	ID        clients.TokenID `json:"id"`
	ClientID  domain.ClientID `json:"client_id"`
	Client    string          `json:"client"`
	Scopes    []clients.Scope `json:"scopes"`
	Label     string          `json:"label"`
	Status    clients.Status  `json:"status"`
	CreatedAt domain.Instant  `json:"created_at"`
	ExpiresAt domain.Instant  `json:"expires_at"`
	RevokedAt *domain.Instant `json:"revoked_at,omitempty"`
}

// Run lists the tokens.
func (c *tokenListCommand) Run(ctx context.Context, io cli.IO) error {
	var tokens []clients.Token
	err := once(ctx, c.Database, func(ctx context.Context, pool *pgxpool.Pool) (err error) {
		tokens, err = clients.New(pool).List(ctx)
		return err
	})
	if err != nil {
		return err
	}
	if c.JSON {
		listed := make([]listedToken, 0, len(tokens))
		for _, t := range tokens {
			listed = append(listed, listedToken{
				ID: t.ID, ClientID: t.ClientID, Client: t.Client, Scopes: t.Scopes, Label: t.Label, Status: t.Status,
				CreatedAt: domain.Instant(t.CreatedAt), ExpiresAt: domain.Instant(t.ExpiresAt), RevokedAt: (*domain.Instant)(t.RevokedAt),
			})
		}
		return cli.PrintJSON(io.Out, map[string]any{"tokens": listed})
	}
	if len(tokens) == 0 {
		_, err := fmt.Fprintln(io.Out, "There are no tokens yet. Make one:\n  api token create --client NAME --scope bookings:write,bookings:read")
		return err
	}
	rows := make([][]string, 0, len(tokens))
	for _, t := range tokens {
		rows = append(rows, []string{t.ID.String(), string(t.Status), t.Client, join(t.Scopes), day(t.ExpiresAt), t.Label})
	}
	return cli.PrintTable(io.Out, []string{"ID", "STATUS", "CLIENT", "SCOPES", "EXPIRES", "LABEL"}, rows)
}

type tokenRevokeCommand struct {
	cli.Database `kong:"-"`

	ID   string `arg:"" help:"The token's id, as create and list show it; not the token itself."`
	JSON bool   `name:"json" help:"Print JSON, for scripts."`
}

// Configure reads the environment and checks the argument.
func (c *tokenRevokeCommand) Configure(getenv func(string) string, p *cli.Problems) {
	c.Database.Configure(getenv, p)
	if _, err := domain.ParseID[clients.TokenID](c.ID); err != nil {
		// The argument itself is not repeated: it may be the token.
		p.Add("the argument is not a token's id; see: api token list")
	}
}

// Run revokes the token.
func (c *tokenRevokeCommand) Run(ctx context.Context, io cli.IO) error {
	id, err := domain.ParseID[clients.TokenID](c.ID)
	if err != nil {
		return err
	}
	var at time.Time
	err = once(ctx, c.Database, func(ctx context.Context, pool *pgxpool.Pool) (err error) {
		at, err = clients.New(pool).Revoke(ctx, id)
		return err
	})
	if err != nil {
		return fmt.Errorf("token %s: %w", id, err)
	}
	if c.JSON {
		return cli.PrintJSON(io.Out, map[string]any{"id": id, "revoked_at": domain.Instant(at)})
	}
	_, err = fmt.Fprintf(io.Out, "revoked %s at %s\n", id, domain.Instant(at))
	return err
}

func join(scopes []clients.Scope) string {
	names := make([]string, 0, len(scopes))
	for _, s := range scopes {
		names = append(names, string(s))
	}
	return strings.Join(names, ",")
}

func day(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }
