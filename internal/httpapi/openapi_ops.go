package httpapi

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"holdfast/internal/clients"
)

const operatorsTag = "Operators"

// registerOperators lists the operators' API.
func (s *Server) registerOperators(api huma.API) {
	read := s.gate(s.authenticated, allowedReading())
	act := func(scope clients.Scope) huma.Middlewares {
		return s.gate(s.authenticated, allowed(scope), keyed, withJSON)
	}
	anyAct := s.gate(s.authenticated, allowedAny(actScopes()...), withJSON)

	operation(s, api, looking(read, "get-overview", "/v1/ops/overview", "See how things stand",
		"Counts of what is unfinished by kind, status and age, what is paused, and what waits for a person."), s.getOverview)
	operation(s, api, looking(read, "list-effects", "/v1/ops/effects", "List effects",
		"Effects of every client: what has been decided and must happen. Without a filter, every unfinished one; with stuck=true what needs attention. "+
			"Unfinished ones come by status and due time, finished ones the newest first, those of a booking the oldest first. Rows move while one pages through them; a page is right when it is read."), s.listEffects)
	operation(s, api, looking(read, "get-effect", "/v1/ops/effects/{id}", "Look at an effect",
		"One effect with the booking's other effects, what was done to them by hand, and which acts its kind and state allow. A booking's id shows its charge.", CodeNotFound), s.getEffect)
	operation(s, api, looking(read, "preview-act", "/v1/ops/effects/{id}/preview", "See what an act would do",
		"Reads the payment provider now, where the act concerns money, and says what the act would do and what that means for the money. It changes nothing. "+
			"If the provider cannot be read, unread says why. Send seen with the act, to be refused if something has moved since.", CodeNotFound), s.previewAct)
	operation(s, api, looking(read, "get-timeline", "/v1/ops/bookings/{id}/timeline", "See all that has happened to a booking",
		"The client's key, the booking, effects and attempts, requests to the payment provider, intent, charge, refunds and disputes, webhooks, events, and what was done by hand, the oldest first. It holds nothing personal.", CodeNotFound), s.getTimeline)

	operation(s, api, acting(act(clients.OperatorReplay), "replay", "Let an effect happen now",
		"Same effect, same provider keys, so money moves at most once. A pending or parked effect is tried again; one in doubt is the next that the reconciler looks at; a finished one is refused."), s.does("replay"))
	operation(s, api, acting(act(clients.OperatorRepublish), "republish", "Send an event to the stream again",
		"An event that is done goes out once more, as the same bytes under the same id. ack says whether the stream kept it or dropped the repeat.", CodeBrokerAway), s.does("republish"))
	operation(s, api, acting(act(clients.OperatorResolve), "resolve", "Adopt what the provider shows",
		"Reads the payment provider and settles what it shows, through the same door as the workers.", CodeProviderUnread), s.does("resolve"))
	operation(s, api, acting(act(clients.OperatorDiscard), "discard", "Give an effect up",
		"It will never happen. What could still take or give money is refused: the provider is read for the proof that it cannot. An event leaves a skip marker under its number.", CodeProviderUnread, CodeBrokerAway), s.does("discard"))

	operation(s, api, looking(read, "list-requests", "/v1/ops/requests", "List acts that wait for a second person",
		"An act that lets more money move than the deployment allows one person waits here until somebody else approves it, or its time is over."), s.listRequests)
	operation(s, api, putting(anyAct, "decide-request", "/v1/ops/requests/{id}", "Approve or withdraw an act",
		"Needs the act's scope. An approval does the act, as it would be done now, and the audit names both people. Sent again after a lost answer it is refused, and tells who has decided.",
		append(actRefusals(), CodeSamePerson, CodeRequestDecided, CodeRequestExpired, CodeRefundRefused, CodeNotFound, CodeProviderUnread, CodeBrokerAway)...), s.decideRequest)

	operation(s, api, looking(read, "list-runs", "/v1/ops/runs", "List bulk acts", "The newest first."), s.listRuns)
	op := putting(s.gate(s.authenticated, allowedReading(), withJSON), "preview-run", "/v1/ops/runs/preview", "See what a bulk act would do",
		"Needs the scope operator:read, and no key: it changes nothing, and asks the provider nothing. The body is that of the run.", CodeActRefused, CodeNotApplicable)
	op.Method = http.MethodPost
	operation(s, api, op, s.previewRun)
	operation(s, api, looking(read, "get-run", "/v1/ops/runs/{id}", "Look at a bulk act", "How far it has come. It goes on only while somebody continues it.", CodeNotFound), s.getRun)
	operation(s, api, putting(anyAct, "start-run", "/v1/ops/runs/{id}", "Start a bulk act",
		"Needs the act's scope. Chooses the effects and writes them down; no more are ever added, and nothing is done to them yet: continue the run. The same id again returns the run as it stands; with another order it is refused.",
		CodeRunDiffers, CodeActRefused, CodeNotApplicable), s.startRun)
	op = putting(anyAct, "continue-run", "/v1/ops/runs/{id}/continue", "Go on with a bulk act",
		"Needs the act's scope, and no key: each effect is acted on once, whoever continues the run and however often. Send it until left is 0, a second later where nothing has moved. Each accepted act has its row in the audit, each refused one says why in its item. One that fails is tried again later, five times in all.",
		CodeNotFound, CodeActRefused, CodeProviderUnread, CodeBrokerAway, CodeNotConfigured)
	op.Method = http.MethodPost
	operation(s, api, op, s.continueRun)
	op = putting(anyAct, "end-run", "/v1/ops/runs/{id}/end", "End a bulk act",
		"Needs the act's scope, and no key. What was done stays done; nothing is done to the effects that are left. It has one row in the audit. Of a run that is finished or ended nothing changes.",
		CodeNotFound, CodeActRefused)
	op.Method = http.MethodPost
	operation(s, api, op, s.endRun)
	operation(s, api, looking(read, "list-run-items", "/v1/ops/runs/{id}/items", "See what became of each effect of a bulk act", "By position.", CodeNotFound), s.listRunItems)

	operation(s, api, looking(read, "list-actions", "/v1/ops/actions", "Read the audit",
		"What was done by hand: who, when, why, before and after. The newest first."), s.listActions)
	operation(s, api, looking(read, "list-pauses", "/v1/ops/pauses", "List what is paused", "Charges and events can be; fences, reads and refunds always go on."), s.listPauses)
	operation(s, api, putting(s.gate(s.authenticated, allowed(clients.OperatorPause), withJSON), "set-pause", "/v1/ops/pauses/{kind}", "Pause or resume a kind of effects",
		"Needs the scope operator:pause. While charge is paused no money is taken, and holds end unpaid; while publish is paused no event is told. It holds in every process from the next effect on.",
		CodeNotFound), s.setPause)
}

// allowedReading asks for the scope operator:read, which every other one of operators means, too.
func allowedReading() check { return allowed(clients.OperatorRead) }

// looking is an operation that reads.
func looking(gate huma.Middlewares, id, path, summary, says string, codes ...Code) huma.Operation {
	op := scoped(huma.Operation{
		OperationID: id, Method: http.MethodGet, Path: path, Tags: []string{operatorsTag}, Summary: summary,
		Description: "Needs the scope operator:read. " + says,
	}, append(codes, CodeValidationFailed)...)
	op.Middlewares = gate
	return op
}

// acting is one act on one effect.
func acting(gate huma.Middlewares, act, summary, says string, codes ...Code) huma.Operation {
	result := func(says string) *huma.Response {
		return &huma.Response{Description: says, Content: map[string]*huma.MediaType{"application/json": {Schema: reference("ActResult")}}}
	}
	return decides(huma.Operation{
		OperationID: act + "-effect", Method: http.MethodPost, Path: "/v1/ops/effects/{id}/" + act, Tags: []string{operatorsTag}, Summary: summary,
		Description: "Needs the scope operator:" + act + " and an Idempotency-Key. " + says + "\n\n" +
			"The act and its row in the audit are committed together. A refusal (409) has changed nothing and says why, and who was first where somebody was; it is stored and replayed like an act.",
		DefaultStatus: http.StatusOK,
		Responses: map[string]*huma.Response{
			"200": result("It is done."),
			"202": result("Nothing is done yet: the act lets more money move than one person may, and waits for a second one. See request."),
		},
	}, gate, append(append(codes, actRefusals()...), CodeNotFound)...)
}

// putting is an operation that may be sent again as it is, without a key.
func putting(gate huma.Middlewares, id, path, summary, says string, codes ...Code) huma.Operation {
	op := scoped(huma.Operation{
		OperationID: id, Method: http.MethodPut, Path: path, Tags: []string{operatorsTag}, Summary: summary, Description: says,
		SkipValidateBody: true, // parseJSON and what follows it do
	}, append(codes, CodeMalformedJSON, CodeRequestTimeout, CodeBodyTooLarge, CodeUnsupportedMediaType, CodeValidationFailed)...)
	op.Middlewares = gate
	return op
}
