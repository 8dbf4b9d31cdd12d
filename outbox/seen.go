package outbox

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"holdfast/domain"
	"holdfast/internal/postgres"
)

// Seen names the state of an effect as somebody was shown it: its status, and the newest act on it. Whoever acts on what was shown
// is refused if something has moved since.
type Seen string

// See reads how an effect stands, for an act that is to be done to it as it is. It returns domain.ErrNotFound if there is none.
func See(ctx context.Context, q postgres.Querier, id domain.EffectID) (Effect, Seen, error) {
	e, err := one(ctx, q, id, selectEffect)
	if err != nil {
		return Effect{}, "", err
	}
	newest, err := newestAct(ctx, q, id)
	return e, seen(e, newest), err
}

// LockSeen locks an effect until tx ends, and refuses if it is not as it was seen, with who did what to it meanwhile or how it has
// moved by itself.
func LockSeen(ctx context.Context, tx pgx.Tx, id domain.EffectID, as Seen) (Effect, error) {
	e, err := one(ctx, tx, id, lockEffect)
	if err != nil {
		return Effect{}, err
	}
	newest, err := newestAct(ctx, tx, id) // a statement of its own, so that it sees what was waited for
	if err != nil || seen(e, newest) == as {
		return e, err
	}
	_, before, _ := strings.Cut(string(as), ".")
	if newest != nil && newest.ID.String() != before {
		return Effect{}, overtaken(*newest)
	}
	return Effect{}, &RefusedError{
		Code: RefusedChanged, Reason: fmt.Sprintf("it has moved by itself since it was looked at, and is %s now; look again", e.Status),
	}
}

// SeeBooking reads how a booking stands, as far as people have acted on it and its effects.
func SeeBooking(ctx context.Context, q postgres.Querier, booking domain.BookingID) (Seen, error) {
	newest, err := newestOf(ctx, q, booking)
	if err != nil || newest == nil {
		return "booking", err
	}
	return SeenAfter("booking", newest.ID), nil
}

// CheckBooking refuses if somebody has acted on a booking, which the caller has locked, since it was seen, and tells who.
func CheckBooking(ctx context.Context, tx pgx.Tx, booking domain.BookingID, as Seen) error {
	newest, err := newestOf(ctx, tx, booking)
	if err != nil || newest == nil && as == "booking" || newest != nil && as == SeenAfter("booking", newest.ID) {
		return err
	}
	if newest == nil {
		return &RefusedError{Code: RefusedChanged, Reason: "it is not as it was shown; look again"}
	}
	return overtaken(*newest)
}

// SeenAfter names a state in which an act is the newest.
func SeenAfter(state string, act uuid.UUID) Seen { return Seen(state + "." + act.String()) }

func newestOf(ctx context.Context, q postgres.Querier, booking domain.BookingID) (*Action, error) {
	acts, err := actions(ctx, q, `WHERE booking_id = $1 ORDER BY at DESC, id DESC LIMIT 1`, booking)
	if err != nil || len(acts) == 0 {
		return nil, err
	}
	return &acts[0], nil
}

func seen(e Effect, newest *Action) Seen {
	if newest == nil {
		return Seen(e.Status)
	}
	return SeenAfter(string(e.Status), newest.ID)
}

func newestAct(ctx context.Context, q postgres.Querier, id domain.EffectID) (*Action, error) {
	acts, err := actions(ctx, q, `WHERE effect_id = $1 ORDER BY at DESC, id DESC LIMIT 1`, id)
	if err != nil || len(acts) == 0 {
		return nil, err
	}
	return &acts[0], nil
}

// overtaken tells who was first.
func overtaken(a Action) *RefusedError {
	did, known := map[string]string{
		"replay": "replayed it", "republish": "republished it", "resolve": "resolved it", "discard": "discarded it", "refund": "began a refund",
		"request replay": "asked for a second person to replay it", "request resolve": "asked for a second person to resolve it",
		"request refund": "asked for a second person to refund it", "withdraw request": "withdrew a request",
	}[a.Action]
	if !known {
		did = fmt.Sprintf("did %q to it", a.Action)
	}
	at := domain.Instant(a.At)
	return &RefusedError{
		Code: RefusedChanged, By: a.Actor, At: &at,
		Reason: fmt.Sprintf("%s %s at %s: %s; look again before you act", a.Actor, did, a.At.Format(time.RFC3339), a.Reason),
	}
}
