package httpapi

import (
	"context"
	"strings"

	"github.com/google/uuid"

	"holdfast/domain"
	"holdfast/internal/bookings"
	"holdfast/internal/clients"
	"holdfast/internal/operator"
	"holdfast/outbox"
)

// Operators is the operators' desk: what is stuck and why, and the acts that set it going again.
type Operators interface {
	Overview(ctx context.Context) (operator.Overview, error)
	List(ctx context.Context, f outbox.Filter) (operator.Page, error)
	Show(ctx context.Context, id domain.EffectID) (operator.Shown, error)
	Timeline(ctx context.Context, id domain.BookingID) (operator.Timeline, error)
	Audit(ctx context.Context, f operator.AuditFilter) (operator.AuditPage, error)

	Preview(ctx context.Context, act operator.Act, on operator.Target, amount int64) (operator.Preview, error)
	DoOnce(ctx context.Context, k bookings.Keyed, o operator.Order, show func(operator.Result, *outbox.RefusedError) (int, []byte, error)) (bookings.Response, error)

	Request(ctx context.Context, id uuid.UUID) (operator.Request, error)
	Requests(ctx context.Context, all bool) ([]operator.Request, error)
	Approve(ctx context.Context, id uuid.UUID, by outbox.Actor, reason string) (operator.Result, error)
	Withdraw(ctx context.Context, id uuid.UUID, by outbox.Actor, reason string) (operator.Request, error)

	Run(ctx context.Context, id uuid.UUID) (operator.Run, error)
	Runs(ctx context.Context, unfinished bool) ([]operator.Run, error)
	RunItems(ctx context.Context, id uuid.UUID, from, limit int) ([]operator.RunItem, error)
	DryRun(ctx context.Context, o operator.RunOrder) (operator.DryRun, error)
	StartRun(ctx context.Context, o operator.RunOrder) (operator.Run, error)
	ContinueRun(ctx context.Context, id uuid.UUID, n int) (operator.Run, error)
	EndRun(ctx context.Context, id uuid.UUID, by outbox.Actor, reason string) (operator.Run, error)

	Pauses(ctx context.Context) ([]outbox.Pausing, error)
	SetPause(ctx context.Context, kind domain.EffectKind, paused bool, by outbox.Actor, reason string) (operator.PauseResult, error)
}

// shown is an answer that the desk's own words make up.
type shown[T any] struct{ Body T }

// actScope is the permission that an act needs.
func actScope(act operator.Act) clients.Scope { return clients.Scope("operator:" + string(act)) }

// actScopes are the permissions of all acts.
func actScopes() []clients.Scope {
	return []clients.Scope{
		clients.OperatorReplay, clients.OperatorRepublish, clients.OperatorResolve, clients.OperatorRefund, clients.OperatorDiscard,
	}
}

// may refuses an act that the token does not allow, where only the body, or a row, says which act it is.
func (x *exchange) may(act operator.Act) error { return allowed(actScope(act))(nil, nil, x) }

// actor is who the audit names: the client of the token. That is a person only where every person has a client of their own.
func (x *exchange) actor() outbox.Actor { return outbox.Actor(x.principal.Name) }

// effectID reads an effect's id out of the path. What is no id names nothing.
func (x *exchange) effectID(text string) (domain.EffectID, error) {
	id, err := domain.ParseID[domain.EffectID](text)
	if err != nil {
		return id, domain.ErrNotFound
	}
	x.effect = id.String()
	return id, nil
}

// bookingID reads a booking's id out of the path.
func (x *exchange) bookingID(text string) (domain.BookingID, error) {
	id, err := domain.ParseID[domain.BookingID](text)
	if err != nil {
		return id, domain.ErrNotFound
	}
	x.booking = id.String()
	return id, nil
}

// plainID reads the id of a request or a run.
func plainID(text string) (uuid.UUID, error) {
	id, err := uuid.Parse(text)
	if err != nil || id.String() != text {
		return uuid.UUID{}, domain.ErrNotFound
	}
	return id, nil
}

const minReason, maxReason = 3, 500 // characters

// reason takes why somebody acts, for whoever reads the audit.
func (m members) reason() string {
	text := m.text("reason", minReason, maxReason, line())
	if strings.TrimSpace(text) == "" && text != "" {
		m.fault("reason", "want words")
	}
	return text
}

// readBodyOf reads the members of a JSON body; everything wrong with them is told at once.
func readBodyOf(body []byte, read func(m members)) error {
	value, err := parseJSON(body)
	if err != nil {
		return err
	}
	var found faults
	m := readObject(value, "", &found)
	read(m)
	m.end()
	if len(found) > 0 {
		return found
	}
	return nil
}
