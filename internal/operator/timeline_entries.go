package operator

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"holdfast/domain"
	"holdfast/outbox"
	"holdfast/payments"
)

// facts makes the facts of an entry from names and values by turns; a fact without a value is left out.
func facts(pairs ...string) []Fact {
	all := []Fact{}
	for pair := range slices.Chunk(pairs, 2) {
		if pair[1] != "" {
			all = append(all, Fact{Name: pair[0], Value: pair[1]})
		}
	}
	return all
}

func number[T int | int64](n T) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(int64(n), 10)
}

func moment(t *time.Time) string {
	if t == nil {
		return ""
	}
	return domain.Instant(*t).String()
}

func id(of uuid.UUID) string {
	if of == uuid.Nil {
		return ""
	}
	return of.String()
}

func yes(so bool) string {
	if so {
		return "yes"
	}
	return ""
}

func (s story) keys() (all []Entry) {
	for _, k := range s.booking.Keys {
		key := k.Begins
		if !k.Whole {
			key += "…"
		}
		all = append(all, Entry{
			At: domain.Instant(k.CreatedAt), What: "key", Title: "request under a client's key",
			Facts: facts("request", k.Method+" "+k.Route, "key", key, "answer", number(k.Status)),
		})
	}
	return all
}

// milestones are what the booking's own row tells; everything between is told by its events.
func (s story) milestones() []Entry {
	b := s.booking.Booking
	total := domain.Money{Amount: b.Amount, Currency: b.Currency}
	all := []Entry{{
		At: domain.Instant(b.CreatedAt), What: "booking", Title: "booking accepted", ID: b.ID.String(),
		Facts: facts("total", payments.ForPeople(total), "hold until", moment(&b.HoldExpiresAt)),
	}}
	if b.CancelRequestedAt != nil {
		back := domain.Money{Amount: b.CancelRefund, Currency: b.Currency}
		all = append(all, Entry{
			At: domain.Instant(*b.CancelRequestedAt), What: "booking", Title: "cancellation asked for", ID: b.ID.String(),
			Facts: facts("goes back by the policy, if it is paid", payments.ForPeople(back)),
		})
	}
	if b.EndedAt != nil {
		all = append(all, Entry{
			At: domain.Instant(*b.EndedAt), What: "booking", Title: "booking " + string(b.Status), ID: b.ID.String(),
			Facts: facts("reason", string(b.EndingReason)),
		})
	}
	return all
}

// effects are the effects, and of those that are events what was told.
func (s story) effects() (all []Entry) {
	for _, e := range slices.Backward(s.outbox.Effects) {
		if e.Kind == domain.EffectPublish {
			all = append(all, event(e))
			continue
		}
		all = append(all, Entry{
			At: domain.Instant(e.CreatedAt), What: "effect", Title: fmt.Sprintf("%s queued", e.Kind), Detail: e.LastError, ID: e.ID.String(),
			Facts: facts("status", string(e.Status), "attempts", number(e.Attempts), "next", next(e), "finished", moment(e.FinishedAt)),
		})
		if e.FinishedAt != nil {
			all = append(all, Entry{
				At: domain.Instant(*e.FinishedAt), What: "effect", Title: fmt.Sprintf("%s %s", e.Kind, plain(string(e.Status))), ID: e.ID.String(), Facts: []Fact{},
			})
		}
	}
	return all
}

func next(e outbox.Effect) string {
	if e.Status != domain.EffectPending && e.Status != domain.EffectInDoubt {
		return ""
	}
	return moment(&e.DueAt)
}

func event(e outbox.Effect) Entry {
	return Entry{
		At: domain.Instant(e.CreatedAt), What: "event", Title: plain(string(e.EventType)) + " told", Detail: e.LastError, ID: e.ID.String(),
		Facts: facts("sequence", number(e.EventSeq), "status", string(e.Status), "attempts", number(e.Attempts), "stream", e.Stream,
			"stream sequence", number(e.StreamSequence), "duplicate", yes(e.Duplicate), "acknowledged", moment(e.FinishedAt)),
	}
}

// plain writes a word of ours as people do.
func plain(word string) string { return strings.ReplaceAll(word, "_", " ") }

func (s story) sends() (all []Entry) {
	for _, c := range slices.Backward(s.money.Sends) {
		detail := ""
		switch {
		case c.Outcome == "unknown" && c.HTTPStatus == 0:
			detail = "no answer has come so far"
		case c.HTTPStatus == 0:
			detail = "the answer was lost; a reading has shown what became of it"
		}
		all = append(all, Entry{
			At: domain.Instant(c.FirstSentAt), What: "send", Title: fmt.Sprintf("%s sent", c.Operation), Detail: detail, ID: c.Key,
			Facts: facts("key", c.Key, "ordinal", number(c.Ordinal), "sends", number(c.Sends), "last sent", again(c.Sends, c.LastSentAt),
				"outcome", plain(c.Outcome), "HTTP status", number(c.HTTPStatus), "error code", c.ErrorCode, "request id", c.RequestID,
				"replayed", yes(c.Replayed), "refund", id(c.RefundID)),
		})
	}
	return all
}

func again(sends int, last time.Time) string {
	if sends < 2 {
		return ""
	}
	return moment(&last)
}

// taken are the intent and the money that it has taken. Neither has a time of its own: they are as old as the newest send that
// made them.
func (s story) taken() (all []Entry) {
	p := s.money.Payment
	if p.IntentID == "" {
		return nil
	}
	made := s.newest(domain.OpCreate, p.UpdatedAt)
	all = append(all, Entry{
		At: domain.Instant(made), What: "intent", Title: "payment intent made", ID: p.IntentID,
		Facts: facts("payment", p.ID.String(), "status here", plain(string(p.Status)), "cards tried", number(p.Card), "decline code", p.DeclineCode,
			"failure code", p.FailureCode),
	})
	if p.Status == domain.PaymentSucceeded {
		received := domain.Money{Amount: p.Received, Currency: p.Currency}
		if p.Received == 0 {
			received.Amount = p.Amount
		}
		fee := ""
		if p.TransactionID != "" {
			fee = payments.ForPeople(domain.Money{Amount: p.Fee, Currency: p.FeeCurrency})
		}
		all = append(all, Entry{
			At: domain.Instant(s.newest(domain.OpConfirm, made)), What: "charge", Title: "money taken", ID: p.ChargeID,
			Facts: facts("received", payments.ForPeople(received), "intent", p.IntentID, "transaction", p.TransactionID, "fee", fee),
		})
	}
	return all
}

// newest is when an operation was sent last.
func (s story) newest(op domain.Operation, otherwise time.Time) time.Time {
	var at time.Time
	for _, c := range s.money.Sends {
		if c.Operation == op && c.LastSentAt.After(at) {
			at = c.LastSentAt
		}
	}
	if at.IsZero() {
		return otherwise
	}
	return at
}

func (s story) refunds() (all []Entry) {
	for _, f := range slices.Backward(s.money.Refunds) {
		amount := payments.ForPeople(domain.Money{Amount: f.Amount, Currency: f.Currency})
		all = append(all, Entry{
			At: domain.Instant(f.CreatedAt), What: "refund", Title: "refund begun", Detail: f.RequestReason, ID: f.ID.String(),
			Facts: facts("amount", amount, "cause", plain(f.Reason), "asked for by", f.RequestedBy, "status", f.Status,
				"provider's id", f.ProviderRefundID, "failure code", f.FailureCode),
		})
		if f.SettledAt != nil {
			all = append(all, Entry{
				At: domain.Instant(*f.SettledAt), What: "refund", Title: "refund " + f.Status, ID: f.ID.String(),
				Facts: facts("amount", amount, "provider's id", f.ProviderRefundID, "failure code", f.FailureCode),
			})
		}
	}
	return all
}

func (s story) disputes() (all []Entry) {
	for _, d := range slices.Backward(s.money.Disputes) {
		amount := payments.ForPeople(domain.Money{Amount: d.Amount, Currency: d.Currency})
		all = append(all, Entry{
			At: domain.Instant(d.CreatedAt), What: "dispute", Title: "dispute opened", ID: d.ID,
			Facts: facts("amount", amount, "reason", plain(d.Reason), "status", plain(d.Status), "money withdrawn", yes(d.Withdrawn),
				"opened at the provider", moment(&d.OpenedAt)),
		})
		if domain.DisputeStatus(d.Status).Final() {
			all = append(all, Entry{
				At: domain.Instant(d.UpdatedAt), What: "dispute", Title: "dispute " + plain(d.Status), ID: d.ID, Facts: facts("amount", amount),
			})
		}
	}
	return all
}

func (s story) receipts() (all []Entry) {
	for _, r := range slices.Backward(s.money.Receipts) {
		all = append(all, Entry{
			At: domain.Instant(r.ReceivedAt), What: "webhook", Title: r.Type, Detail: r.Why, ID: r.ID,
			Facts: facts("object", r.ObjectID, "via", r.Via, "status", r.Status, "attempts", number(r.Attempts), "handled", moment(r.FinishedAt)),
		})
	}
	return all
}

func (s story) actions() (all []Entry) {
	for _, a := range slices.Backward(s.outbox.Actions) {
		effect := ""
		if a.EffectID != nil {
			effect = a.EffectID.String()
		}
		all = append(all, Entry{
			At: domain.Instant(a.At), What: "act", Title: a.Action, Detail: a.Reason, ID: a.ID.String(),
			Facts: facts("by", string(a.Actor), "effect", effect, "before", compact(a.Before), "after", compact(a.After)),
		})
	}
	return all
}

// compact is what an act has changed, as the audit keeps it. It is ours, and short; cut where it is not.
func compact(state json.RawMessage) string {
	const most = 500
	if text := []rune(string(state)); len(text) > most {
		return string(text[:most]) + "…"
	}
	return string(state)
}
