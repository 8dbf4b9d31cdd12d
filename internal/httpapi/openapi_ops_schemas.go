package httpapi

import (
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"holdfast/domain"
	"holdfast/internal/operator"
	"holdfast/outbox"
	"holdfast/payments"
)

// The operators' API shows what the desk says, as the command line does with --json. What its members mean is told here, and
// a test compares: each stands here once.

// operatorSchema is a type of the desk under the name that the document gives it.
type operatorSchema struct {
	of      reflect.Type
	name    string
	members map[string]string // what each means; of those that say it by themselves, nothing
}

func operatorSchemas() []operatorSchema {
	return []operatorSchema{
		{reflect.TypeFor[operator.Row](), "Effect", map[string]string{
			"id":              "Of an event: the event's id, too, by which consumers know repeats.",
			"booking_id":      "",
			"kind":            "",
			"status":          "",
			"attempts":        "How often it was tried since it was made or last replayed.",
			"last_error":      "What went wrong last, without anything secret.",
			"due_at":          "Not before this; of a doubt, when it is looked at next.",
			"created_at":      "When it was committed.",
			"finished_at":     "",
			"job_id":          "The job that carries it; the queue may have forgotten it.",
			"event_type":      "Of an event: what has happened.",
			"event_seq":       "Of an event: its number within the booking.",
			"payload":         "Of an event: what it tells.",
			"stream":          "Of an event: the stream that has it.",
			"stream_sequence": "Of an event: its place there.",
			"duplicate":       "Of an event: the stream had it already.",
			"stuck":           "It needs attention: parked, in doubt, late, or carried by no live job.",
			"reason":          "In plain words: why it is where it is.",
			"age_seconds":     "Since it was committed, by the database's clock.",
			"at_stake":        "What it would take or give back. Absent: it moves no money.",
			"next":            "The next thing that happens to it by itself.",
		}},
		{reflect.TypeFor[operator.Next](), "NextStep", map[string]string{
			"what": "In plain words; \"nothing, until a person acts\" where that is so.",
			"at":   "When. Absent: unknown, or never.",
		}},
		{reflect.TypeFor[operator.Page](), "EffectPage", map[string]string{
			"rows":   "",
			"next":   "Send this as after, with the same filters, to have the next page. Not there on the last page.",
			"pauses": "What is paused, whatever the filter.",
		}},
		{reflect.TypeFor[outbox.Pausing](), "Pause", map[string]string{
			"kind": "", "actor": "Who has paused it.", "reason": "Why.", "paused_at": "",
		}},
		{reflect.TypeFor[operator.Shown](), "EffectDetail", map[string]string{
			"effect":  "",
			"others":  "The other effects of its booking, the oldest first.",
			"actions": "What was done by hand to the booking and its effects, the oldest first.",
			"acts":    "Every act, and whether the effect's kind and state allow it. The provider was not asked: a preview does.",
		}},
		{reflect.TypeFor[operator.Choice](), "ActChoice", map[string]string{
			"act": "", "allowed": "", "why": "Why not.",
		}},
		{reflect.TypeFor[outbox.Action](), "OperatorAction", map[string]string{
			"id":         "",
			"actor":      "Who did it: the client of the token, the user of the command line, or, after an approval, both people.",
			"action":     "What was done: replay, republish, resolve, refund, discard, pause, resume, …",
			"effect_id":  "",
			"booking_id": "",
			"reason":     "Why, in the person's words.",
			"before":     "What it was done to, as it stood then. Its members depend on the action.",
			"after":      "And as it stood afterwards.",
			"at":         "",
		}},
		{reflect.TypeFor[operator.AuditPage](), "OperatorActionPage", map[string]string{
			"actions": "", "next": "Send this as after, with the same filters, to have the next page. Not there on the last page.",
		}},
		{reflect.TypeFor[operator.Overview](), "OperatorOverview", map[string]string{
			"as_of":        "The moment as of which all of it was read.",
			"stuck":        "Effects that need attention; at most 10,000 are counted.",
			"stuck_more":   "There are more than were counted.",
			"backlog":      "Unfinished effects by kind and status; every pair is there.",
			"ages":         "Unfinished effects by age.",
			"pauses":       "What is paused.",
			"requests":     "Acts that wait for a second person.",
			"runs":         "Bulk acts that are not finished.",
			"receipts":     "Events of the payment provider that are parked, or wait for long.",
			"foreign_jobs": "Jobs of kinds that this build does not know.",
		}},
		{reflect.TypeFor[operator.Backlog](), "EffectBacklog", map[string]string{
			"kind": "", "status": "", "count": "", "oldest_seconds": "The age of the oldest; 0 where there is none.",
		}},
		{reflect.TypeFor[operator.AgeBand](), "EffectAges", map[string]string{
			"kind": "", "from": "Seconds; at least so old.", "to": "Seconds; less than this. 0: there is no end.", "count": "",
		}},
		{reflect.TypeFor[outbox.ForeignJobs](), "ForeignJobs", map[string]string{
			"kind": "", "state": "The queue's word.", "count": "",
		}},
		{reflect.TypeFor[operator.Preview](), "ActPreview", map[string]string{
			"act":           "",
			"effect":        "As it stands.",
			"seen":          "Send it with the act, which is then refused if something has moved since.",
			"provider":      "What the payment provider shows now. Absent: the act concerns no money, or the provider could not be read.",
			"unread":        "Why the provider could not be read.",
			"allowed":       "The act would be done, or wait for a second person.",
			"refusal":       "Why not, and what to do instead.",
			"would":         "In plain words: what would happen, and what it means for the money.",
			"money":         "What the act lets move.",
			"second_person": "Somebody else would have to approve it.",
		}},
		{reflect.TypeFor[payments.ProviderSide](), "ProviderSide", map[string]string{
			"as_of":     "When the reading began.",
			"intent_id": "",
			"intent":    "Its status, in the provider's word. Absent: there is none, or none that is ours.",
			"charges":   "",
			"refunds":   "",
			"says":      "In plain words: what that means.",
		}},
		{reflect.TypeFor[payments.ProviderFact](), "ProviderFact", map[string]string{
			"id": "", "status": "The provider's word.", "amount": "Minor units.", "ours": "It carries an id of ours; else it was made by hand.",
		}},
		{reflect.TypeFor[operator.Result](), "ActResult", map[string]string{
			"action_id":  "Its row in the audit.",
			"act":        "",
			"effect_id":  "",
			"booking_id": "",
			"kind":       "Of the effect.",
			"said":       "In plain words: what has happened and what comes next.",
			"before":     "The effect before.",
			"after":      "The effect after.",
			"request":    "It waits for a second person; nothing else has happened.",
			"ack":        "Of republish: what the stream said.",
		}},
		{reflect.TypeFor[outbox.Snapshot](), "EffectSnapshot", map[string]string{
			"status": "As an effect's. Empty: there was no effect then.", "attempts": "", "due_at": "", "job_id": "The job that carries it; null: none.", "last_error": "",
			"stream": "Of an event: the stream that has it.", "stream_sequence": "Of an event: its place there.",
		}},
		{reflect.TypeFor[operator.Ack](), "StreamAck", map[string]string{
			"stream": "", "sequence": "", "kept": "true: stored anew. false: the stream had it, and dropped the repeat.",
		}},
		{reflect.TypeFor[operator.Request](), "OperatorRequest", map[string]string{
			"id":         "",
			"act":        "",
			"effect_id":  "",
			"booking_id": "",
			"money":      "What it lets move.",
			"by":         "Who asks.",
			"reason":     "Why, in that person's words.",
			"at":         "",
			"expires_at": "From then on it can no longer be approved.",
			"status":     "",
			"decided_by": "",
			"decided_at": "",
		}},
		{reflect.TypeFor[operator.Run](), "Run", map[string]string{
			"id":           "",
			"act":          "",
			"filter":       "How its effects were chosen.",
			"by":           "Who has started it: the audit names that person for each act.",
			"reason":       "",
			"started_at":   "",
			"finished_at":  "Absent: there are effects left; continue it.",
			"total":        "How many effects it has.",
			"done":         "Accepted acts, each with its row in the audit.",
			"refused":      "Each says why in its item.",
			"failed":       "Given up after five tries that were neither accepted nor refused; the item says why.",
			"left_out":     "Nothing was done to them: somebody has ended the run.",
			"left":         "How many have not been acted on yet.",
			"more":         "More effects matched than the cap let in.",
			"ended_by":     "Who has ended it before all was done.",
			"ended_reason": "Why.",
		}},
		{reflect.TypeFor[operator.RunFilter](), "RunFilter", map[string]string{
			"stuck": "", "kind": "", "status": "", "older_than": "A duration such as 15m0s.",
		}},
		{reflect.TypeFor[operator.RunItem](), "RunItem", map[string]string{
			"position": "", "effect_id": "", "status": "", "said": "What has happened, or why not.", "tries": "How many have failed; absent: none.", "action_id": "Its row in the audit.",
		}},
		{reflect.TypeFor[operator.DryRun](), "DryRun", map[string]string{
			"matched": "How many effects match, up to the cap.",
			"more":    "More match than the cap lets in.",
			"allowed": "On how many of them the act would be done.",
			"refused": "On how many it would not.",
			"money":   "What is at stake in those that are allowed, by currency.",
			"items":   "The first hundred, and what would become of each.",
		}},
		{reflect.TypeFor[operator.PauseResult](), "PauseResult", map[string]string{
			"kind":         "",
			"paused":       "As it is now.",
			"change":       "",
			"waiting":      "Effects of the kind that are pending.",
			"holds_ending": "Of charge: holds that end within an hour. A booking whose hold ends uncharged expires.",
			"said":         "In plain words.",
		}},
		{reflect.TypeFor[operator.Timeline](), "Timeline", map[string]string{
			"booking": "", "entries": "The oldest first.", "more": "There are older ones, which are left out.",
		}},
		{reflect.TypeFor[operator.TimelineBooking](), "TimelineBooking", map[string]string{
			"id": "", "client": "Whose it is: the client's id.", "resource": "Its name.", "status": "", "ending_reason": "", "payment_status": "",
			"total": "Minor units.", "start": "", "end": "", "hold_expires_at": "",
		}},
		{reflect.TypeFor[operator.Entry](), "TimelineEntry", map[string]string{
			"at": "", "what": "What kind of thing: key, booking, effect, send, intent, charge, refund, dispute, webhook, event or act. There may be others.",
			"title": "Such as \"confirm sent\".", "detail": "", "id": "Of the thing: an effect's, or the provider's.", "facts": "",
		}},
		{reflect.TypeFor[operator.Fact](), "TimelineFact", map[string]string{
			"name": "Such as key, request_id or replayed.", "value": "",
		}},
	}
}

func effectKinds() []meaning {
	return []meaning{
		{string(domain.EffectCharge), "the customer's money is taken."},
		{string(domain.EffectCancel), "the payment is fenced: proved that it can take nothing any more, or that it has."},
		{string(domain.EffectRefund), "money goes back."},
		{string(domain.EffectRefresh), "something at the provider that a person has to look at."},
		{string(domain.EffectPublish), "an event is told."},
	}
}

func effectStatuses() []meaning {
	return []meaning{
		{string(domain.EffectPending), "it will be carried out by a worker."},
		{string(domain.EffectInDoubt), "what became of it is not known: the reconciler asks the provider."},
		{string(domain.EffectParked), "it needs a person."},
		{string(domain.EffectDone), "it has happened."},
		{string(domain.EffectNotNeeded), "nothing was left to do."},
		{string(domain.EffectDiscarded), "a person has given it up."},
	}
}

func requestStatuses() []meaning {
	return []meaning{
		{string(operator.RequestOpen), "it waits for somebody else than who asked for it."},
		{string(operator.RequestApproved), "the act was done."},
		{string(operator.RequestWithdrawn), "it was not done, by either person's word."},
		{string(operator.RequestExpired), "nobody has decided in time, and it was not done."},
	}
}

func runItemStatuses() []meaning {
	return []meaning{
		{"waiting", "nothing was done to it yet."},
		{"done", "the act was accepted; action_id is its row in the audit."},
		{"refused", "the act was refused, and nothing was changed; said tells why."},
		{"failed", "each of five tries has failed, and nothing was changed; said tells why."},
		{"left_out", "nothing was done to it: the run was ended; said tells by whom, and why."},
	}
}

// operatorNamer names the schemas of both desks; all others are named after their types.
func operatorNamer(t reflect.Type, hint string) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	for _, s := range deskSchemas() {
		if s.of == t {
			return s.name
		}
	}
	return huma.DefaultSchemaNamer(t, hint)
}

// finishOperators says in the document what the desk's members mean.
func finishOperators(schemas huma.Registry) {
	for _, s := range deskSchemas() {
		schema := schemas.Schema(s.of, false, s.name)
		schema.AdditionalProperties = nil // answers may get new members
		for name, says := range s.members {
			p := schema.Properties[name]
			if p == nil {
				continue // the test tells
			}
			p.Description = says
			if p.Type == huma.TypeArray {
				p.Nullable = false
			}
			if p.Type == "" && p.Ref == "" { // JSON of many shapes
				p.Type, p.AdditionalProperties = huma.TypeObject, true
			}
		}
	}
	for _, of := range []struct {
		schema, member string
		values         []meaning
	}{
		{"Effect", "kind", effectKinds()},
		{"Effect", "status", effectStatuses()},
		{"Pause", "kind", effectKinds()},
		{"PauseResult", "kind", effectKinds()},
		{"ActResult", "kind", effectKinds()},
		{"EffectBacklog", "kind", effectKinds()},
		{"EffectBacklog", "status", effectStatuses()},
		{"EffectAges", "kind", effectKinds()},
		{"OperatorRequest", "status", requestStatuses()},
		{"RunItem", "status", runItemStatuses()},
		{"TimelineBooking", "status", bookingStatuses()},
		{"TimelineBooking", "ending_reason", endingReasons()},
		{"TimelineBooking", "payment_status", paymentStatuses()},
	} {
		explain(schemas.Map()[of.schema].Properties[of.member], of.values)
	}
	for _, name := range []string{"OperatorRequests", "RequestDecision", "Pauses", "Runs", "RunItems"} {
		schemas.Map()[name].AdditionalProperties = nil
	}
}
