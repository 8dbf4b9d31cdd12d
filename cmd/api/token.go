package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"holdfast/domain"
	"holdfast/internal/clients"
)

type tokenCommands struct {
	Create tokenCreateCommand `cmd:"" help:"Make a token; it is shown this once."`
	List   tokenListCommand   `cmd:"" help:"List the tokens; what they open is not stored and cannot be shown."`
	Revoke tokenRevokeCommand `cmd:"" help:"End a token at once."`
}

type tokenCreateCommand struct {
	database `kong:"-"`

	Client    string        `required:"" placeholder:"NAME" help:"The client that the token acts for; made if it does not exist. Clients do not see each other's bookings."`
	Scope     []string      `required:"" placeholder:"SCOPE" help:"What the token allows: bookings:read, bookings:write, finance, operator."`
	ExpiresIn time.Duration `default:"2160h" help:"How long it is valid, at most ten years (default ${default}, 90 days)."`
	Label     string        `placeholder:"TEXT" help:"A note of your own, such as where the token is used."`
	JSON      bool          `name:"json" help:"Print JSON, for scripts."`
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
func (c *tokenCreateCommand) Run(ctx context.Context, io streams) error {
	scopes, err := clients.ParseScopes(c.Scope)
	if err != nil {
		return err
	}
	pool, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer pool.Close()
	made, err := clients.New(pool).Create(ctx, c.Client, scopes, c.Label, c.ExpiresIn)
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(io.out, createdToken{
			Token: made.Token.Reveal(), ID: made.ID, ClientID: made.ClientID, Client: made.Client, Scopes: made.Scopes,
			ExpiresAt: domain.Instant(made.ExpiresAt),
		})
	}
	_, err = fmt.Fprintf(io.out, "%s\n\nKeep it now: it is not stored and cannot be shown again.\nclient   %s\nscopes   %s\nexpires  %s\nrevoke   api token revoke %s\n",
		made.Token.Reveal(), printable(made.Client), join(made.Scopes), day(made.ExpiresAt), made.ID)
	return err
}

type tokenListCommand struct {
	database `kong:"-"`

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
func (c *tokenListCommand) Run(ctx context.Context, io streams) error {
	pool, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer pool.Close()
	tokens, err := clients.New(pool).List(ctx)
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
		return printJSON(io.out, map[string]any{"tokens": listed})
	}
	if len(tokens) == 0 {
		_, err := fmt.Fprintln(io.out, "There are no tokens yet. Make one:\n  api token create --client NAME --scope bookings:write,bookings:read")
		return err
	}
	rows := make([][]string, 0, len(tokens))
	for _, t := range tokens {
		rows = append(rows, []string{t.ID.String(), string(t.Status), t.Client, join(t.Scopes), day(t.ExpiresAt), t.Label})
	}
	return printTable(io.out, []string{"ID", "STATUS", "CLIENT", "SCOPES", "EXPIRES", "LABEL"}, rows)
}

type tokenRevokeCommand struct {
	database `kong:"-"`

	ID   string `arg:"" help:"The token's id, as create and list show it; not the token itself."`
	JSON bool   `name:"json" help:"Print JSON, for scripts."`
}

func (c *tokenRevokeCommand) check(p *problems) {
	c.database.check(p)
	if _, err := domain.ParseID[clients.TokenID](c.ID); err != nil {
		// The argument itself is not repeated: it may be the token.
		p.add("the argument is not a token's id; see: api token list")
	}
}

// Run revokes the token.
func (c *tokenRevokeCommand) Run(ctx context.Context, io streams) error {
	id, err := domain.ParseID[clients.TokenID](c.ID)
	if err != nil {
		return err
	}
	pool, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer pool.Close()
	at, err := clients.New(pool).Revoke(ctx, id)
	if err != nil {
		return fmt.Errorf("token %s: %w", id, err)
	}
	if c.JSON {
		return printJSON(io.out, map[string]any{"id": id, "revoked_at": domain.Instant(at)})
	}
	_, err = fmt.Fprintf(io.out, "revoked %s at %s\n", id, domain.Instant(at))
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
