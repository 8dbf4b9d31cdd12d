package httpapi

import (
	"encoding/json"
	"maps"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"holdfast/domain"
	"holdfast/internal/operator"
	"holdfast/outbox"
	"holdfast/payments"
)

// operatorExamples is what each operation of the desk answers, by its id: a charge that is parked, and what is done about it.
func operatorExamples() map[string]any {
	effect, booking := exampleID[domain.EffectID](1), exampleID[domain.BookingID](2)
	action, run := exampleID[domain.EffectID](3).UUID, exampleID[domain.EffectID](4).UUID
	at := time.Date(2027, 3, 4, 2, 10, 0, 0, time.UTC)
	instant := domain.Instant(at)
	money := domain.Money{Amount: 2500, Currency: "EUR"}
	row := operator.Row{
		Row: outbox.Row{
			Effect: outbox.Effect{
				ID: effect, BookingID: booking, Kind: domain.EffectCharge, Status: domain.EffectParked, Attempts: 6,
				LastError: "the provider answers 401", DueAt: at, CreatedAt: at.Add(-2 * time.Hour),
			},
			Stuck: true, Reason: "parked, needs a person: the provider answers 401",
		},
		AgeSeconds: 7200, AtStake: &money, Next: operator.Next{What: "nothing, until a person acts"},
	}
	replayed := outbox.Action{
		ID: action, Actor: "ada", Action: "replay", EffectID: &effect, BookingID: &booking, Reason: "the key is valid again",
		Before: json.RawMessage(`{"status":"parked"}`), After: json.RawMessage(`{"status":"pending"}`), At: at,
	}
	result := operator.Result{
		ActionID: action, Act: operator.Replay, EffectID: &effect, BookingID: booking, Kind: domain.EffectCharge, Said: "a worker carries it out now",
		Before: outbox.Snapshot{Status: domain.EffectParked, Attempts: 6, DueAt: at, LastError: "the provider answers 401"},
		After:  outbox.Snapshot{Status: domain.EffectPending, DueAt: at, JobID: pointer(int64(71))},
	}
	asked := operator.Request{
		ID: action, Act: operator.Replay, EffectID: &effect, BookingID: booking, Money: domain.Money{Amount: 90_000, Currency: "EUR"}, By: "ada",
		Reason: "the key is valid again", At: instant, ExpiresAt: domain.Instant(at.Add(24 * time.Hour)), Status: operator.RequestOpen,
	}
	approved := asked
	approved.Status, approved.DecidedBy, approved.DecidedAt = operator.RequestApproved, "grace", &instant
	going := operator.Run{
		ID: run, Act: operator.Replay, Filter: operator.RunFilter{Stuck: true, Kind: domain.EffectCharge}, By: "ada", Reason: "the key is valid again",
		StartedAt: instant, Total: 120, Done: 49, Refused: 1, Left: 70,
	}
	ended := going
	ended.LeftOut, ended.Left, ended.EndedBy, ended.EndedReason, ended.FinishedAt = 70, 0, "grace", "the wrong filter", &instant
	item := operator.RunItem{EffectID: effect, Status: "done", Said: "a worker carries it out now", ActionID: &action}
	paused := outbox.Pausing{Kind: domain.EffectCharge, Actor: "ada", Reason: "a wave of fraud", PausedAt: at}
	return map[string]any{
		"get-overview": operator.Overview{
			AsOf: instant, Stuck: 1, Requests: 1, Runs: 1, Pauses: []outbox.Pausing{paused}, Unknown: []outbox.ForeignJobs{},
			Backlog: []operator.Backlog{{Kind: domain.EffectCharge, Status: domain.EffectParked, Count: 1, OldestSeconds: 7200}},
			Ages:    []operator.AgeBand{{Kind: domain.EffectCharge, From: 3600, To: 86_400, Count: 1}},
		},
		"list-effects": operator.Page{Rows: []operator.Row{row}, Pauses: []outbox.Pausing{}},
		"get-effect": operator.Shown{
			Effect: row, Others: []operator.Row{}, Actions: []outbox.Action{replayed},
			Acts: []operator.Choice{{Act: operator.Replay, Allowed: true}, {Act: operator.Republish, Why: "a charge is no event"}},
		},
		"preview-act": operator.Preview{
			Act: operator.Replay, Effect: &row, Seen: "pending.6.1", Allowed: true, Money: &money,
			Would: "a worker sends the payment again, under the same key; money moves at most once",
			Provider: &payments.ProviderSide{
				AsOf: instant, IntentID: "pi_3Q", Intent: "requires_confirmation", Charges: []payments.ProviderFact{}, Refunds: []payments.ProviderFact{},
				Says: "nothing was taken yet",
			},
		},
		"replay-effect": result, "republish-effect": result, "resolve-effect": result, "discard-effect": result,
		"get-timeline": operator.Timeline{
			Booking: operator.TimelineBooking{
				ID: booking, Client: "shop", Resource: "Court 1", Status: domain.BookingHeld, PaymentStatus: domain.PaymentPending, Total: money,
				Start: instant, End: domain.Instant(at.Add(time.Hour)), HoldExpiresAt: instant,
			},
			Entries: []operator.Entry{{
				At: instant, What: "send", Title: "confirm sent", Detail: "the provider answered 401", ID: "pi_3Q",
				Facts: []operator.Fact{{Name: "key", Value: "hf:0193:confirm:1"}, {Name: "request_id", Value: "req_1"}},
			}},
		},
		"list-requests":  OperatorRequests{[]operator.Request{asked}},
		"decide-request": RequestDecision{Request: approved, Result: &result},
		"list-runs":      Runs{[]operator.Run{going}},
		"get-run":        going, "start-run": going, "continue-run": going, "end-run": ended,
		"preview-run":    operator.DryRun{Matched: 120, Allowed: 119, Refused: 1, Money: []domain.Money{{Amount: 297_500, Currency: "EUR"}}, Items: []operator.RunItem{item}},
		"list-run-items": RunItems{Items: []operator.RunItem{item}},
		"list-actions":   operator.AuditPage{Actions: []outbox.Action{replayed}},
		"list-pauses":    Pauses{[]outbox.Pausing{paused}},
		"set-pause": operator.PauseResult{
			Kind: domain.EffectCharge, Paused: true, Change: outbox.PauseBegun, Waiting: 12, Holds: 3,
			Said: "12 charges wait, and 3 holds end within an hour",
		},
	}
}

// exampleID is the same at every start.
func exampleID[T ~struct{ uuid.UUID }](n byte) T {
	id := uuid.MustParse("01954f1e-0000-7000-8000-000000000000")
	id[15] = n
	return T{id}
}

// finishExamples puts the examples into the document.
func finishExamples(document *huma.OpenAPI) {
	examples := operatorExamples()
	maps.Copy(examples, financeExamples())
	for _, item := range document.Paths {
		for _, op := range []*huma.Operation{item.Get, item.Post, item.Put} {
			if op == nil {
				continue
			}
			if example, ok := examples[op.OperationID]; ok {
				op.Responses["200"].Content["application/json"].Example = example
			}
		}
	}
}
