package console

import (
	"context"
	"embed"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/google/uuid"

	"holdfast/domain"
	"holdfast/internal/clients"
	"holdfast/internal/operator"
	"holdfast/outbox"
)

// Root is the path under which all of it is served.
const Root = "/console"

//go:embed templates assets
var files embed.FS

// Desk is what operators see and do.
type Desk interface {
	Overview(ctx context.Context) (operator.Overview, error)
	List(ctx context.Context, f outbox.Filter) (operator.Page, error)
	Show(ctx context.Context, id domain.EffectID) (operator.Shown, error)
	Timeline(ctx context.Context, id domain.BookingID) (operator.Timeline, error)
	Audit(ctx context.Context, f operator.AuditFilter) (operator.AuditPage, error)

	Preview(ctx context.Context, act operator.Act, on operator.Target, amount int64) (operator.Preview, error)
	Do(ctx context.Context, o operator.Order) (operator.Result, error)
	Requests(ctx context.Context, all bool) ([]operator.Request, error)
	Request(ctx context.Context, id uuid.UUID) (operator.Request, error)
	Approve(ctx context.Context, id uuid.UUID, by outbox.Actor, reason string) (operator.Result, error)
	Withdraw(ctx context.Context, id uuid.UUID, by outbox.Actor, reason string) (operator.Request, error)
	SetPause(ctx context.Context, kind domain.EffectKind, paused bool, by outbox.Actor, reason string) (operator.PauseResult, error)

	DryRun(ctx context.Context, o operator.RunOrder) (operator.DryRun, error)
	StartRun(ctx context.Context, o operator.RunOrder) (operator.Run, error)
	ContinueRun(ctx context.Context, id uuid.UUID, n int) (operator.Run, error)
	EndRun(ctx context.Context, id uuid.UUID, by outbox.Actor, reason string) (operator.Run, error)
	Runs(ctx context.Context, unfinished bool) ([]operator.Run, error)
	Run(ctx context.Context, id uuid.UUID) (operator.Run, error)
	RunItems(ctx context.Context, id uuid.UUID, from, limit int) ([]operator.RunItem, error)
}

// Clients tells who holds a token.
type Clients interface {
	Authenticate(ctx context.Context, token domain.Secret) (clients.Principal, error)
}

// Sessions knows who is signed in.
type Sessions interface {
	Begin(ctx context.Context, token clients.TokenID) (domain.Secret, error)
	Resume(ctx context.Context, session domain.Secret, seen bool) (clients.Principal, error)
	End(ctx context.Context, session domain.Secret) error
	Holder(ctx context.Context, name string, scopes []clients.Scope) (clients.Principal, error)
}

// Config is what the console needs. Zero values of the rest take their defaults.
type Config struct {
	Desk     Desk
	Clients  Clients
	Sessions Sessions
	Books    Books // finance's; nil: there are no pages of it

	OIDC             *OIDC                // nil: people sign in with tokens alone
	Transient        func(err error) bool // the database was busy or away; default: never
	Runbook          []byte               // Markdown; empty: there is no page of it
	SignInsPerMinute int                  // from one address; default 20
	Refresh          time.Duration        // between two looks of a page that refreshes itself; default 5 s
}

// Console is the pages. It is an http.Handler for everything under [Root].
type Console struct {
	config  Config
	logger  *slog.Logger
	mux     *http.ServeMux
	origin  *http.CrossOriginProtection
	pages   pages
	signIns attempts
	assets  assets
	runbook runbook
	oidc    *federation // nil: there is none
}

// New makes the console.
func New(config Config, logger *slog.Logger) (*Console, error) {
	if config.Transient == nil {
		config.Transient = func(error) bool { return false }
	}
	if config.SignInsPerMinute <= 0 {
		config.SignInsPerMinute = 20
	}
	if config.Refresh <= 0 {
		config.Refresh = 5 * time.Second
	}
	c := &Console{
		config: config, logger: logger, mux: http.NewServeMux(), origin: http.NewCrossOriginProtection(),
		signIns: newAttempts(config.SignInsPerMinute), oidc: newFederation(config.OIDC),
	}
	var err error
	if c.assets, err = loadAssets(files); err != nil {
		return nil, fmt.Errorf("set up the console: %w", err)
	}
	if c.pages, err = loadPages(files, c.assets); err != nil {
		return nil, fmt.Errorf("set up the console: %w", err)
	}
	if c.runbook, err = renderRunbook(config.Runbook); err != nil {
		return nil, fmt.Errorf("set up the console: %w", err)
	}
	c.register()
	return c, nil
}

// register lists every page with the scope that it asks for, and every act. Which scope an act needs depends on the act, and is
// asked for by its handler.
func (c *Console) register() {
	see := clients.OperatorRead
	c.mux.HandleFunc("GET "+Root+"/assets/{name}", c.assets.serve)
	c.open("GET /sign-in", c.showSignIn)
	c.open("POST /sign-in", c.signIn)
	if c.oidc != nil {
		c.open("GET /oidc/start", c.startOIDC)
		c.open("GET /oidc/callback", c.finishOIDC)
	}
	c.page("POST /sign-out", anybody, c.signOut)

	c.page("GET /{$}", anybody, c.start)
	c.page("GET /find", see, c.find)
	c.page("GET /effects", see, c.list)
	c.page("GET /effects/{id}", see, c.effect)
	c.page("GET /effects/{id}/{act}", see, c.previewAct)
	c.page("POST /effects/{id}/{act}", see, c.doAct)
	c.page("GET /bookings/{id}", see, c.timeline)
	c.page("GET /bookings/{id}/refund", clients.OperatorRefund, c.previewRefund)
	c.page("POST /bookings/{id}/refund", clients.OperatorRefund, c.doRefund)
	c.page("GET /requests", see, c.requests)
	c.page("GET /requests/{id}", see, c.request)
	c.page("POST /requests/{id}/approve", see, c.approve)
	c.page("POST /requests/{id}/withdraw", see, c.withdraw)
	c.page("GET /runs", see, c.runs)
	c.page("GET /runs/new", see, c.newRun)
	c.page("POST /runs", see, c.startRun)
	c.page("GET /runs/{id}", see, c.run)
	c.page("POST /runs/{id}/continue", see, c.continueRun)
	c.page("POST /runs/{id}/end", see, c.endRun)
	c.page("GET /pauses", see, c.pauses)
	c.page("POST /pauses/{kind}", clients.OperatorPause, c.setPause)
	c.page("GET /audit", see, c.audit)
	c.page("GET /runbook", see, c.showRunbook)
	if c.config.Books != nil {
		c.registerFinance()
	}
}
