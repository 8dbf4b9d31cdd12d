package httpapi

import (
	"reflect"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"holdfast/internal/clients"
	"holdfast/internal/finance"
	"holdfast/payments"
)

const financeTag = "Finance"

// registerFinance lists the finance desk's API.
func (s *Server) registerFinance(api huma.API) {
	read := s.gate(s.authenticated, allowed(clients.Finance))
	write := s.gate(s.authenticated, allowed(clients.Finance), withJSON)
	of := func(op huma.Operation, says string) huma.Operation {
		op.Tags, op.Description = []string{financeTag}, "Needs the scope finance. "+says
		return op
	}

	operation(s, api, of(describeReport(read), "Reads what is not known yet of the provider's books, compares the two sides transaction by transaction, brings the list of exceptions up to date, and shows the period. "+
		"Asked again it changes nothing. Look at verdict first: only clean says that every transaction is explained. What takes longer than a request may is answered 503 busy, and goes on from there the next time; "+
		"of very large periods ask the command line."), s.getReport)
	operation(s, api, of(looking(read, "list-exceptions", "/v1/finance/exceptions", "List what does not match", ""),
		"In the order in which it was found. The list is as of the latest report or command: a report brings it up to date."), s.listExceptions)
	operation(s, api, of(looking(read, "get-exception", "/v1/finance/exceptions/{id}", "Look at an exception", "", CodeNotFound), "It stays, with who signed and why, after it is off the list."), s.getException)
	operation(s, api, of(putting(write, "note-exception", "/v1/finance/exceptions/{id}/note", "Write a note to an exception", "", CodeActRefused, CodeNotFound),
		"Or give it to another owner. Only an open one can be changed. The audit keeps who did it."), s.noteException)
	operation(s, api, of(putting(write, "sign-off-exception", "/v1/finance/exceptions/{id}/sign-off", "Sign an exception off", "", CodeActRefused, CodeNotFound),
		"Takes an open one off the list; it comes back only if its amount changes. The audit keeps who and why. Sent again by the same client with the same reason it returns the exception as it stands."), s.signOffException)
	operation(s, api, of(putting(write, "sign-off-period", "/v1/finance/sign-off", "Sign a period off", "", CodeActRefused, CodeBooksIncomplete),
		"Locks a period that is over, was read whole and has no open exception. What differs from it later opens an exception against it. Sent again by the same client with the same reason it returns the signature as it stands."), s.signOffPeriod)
	operation(s, api, of(looking(read, "list-payouts", "/v1/finance/payouts", "List the payouts of a period", ""),
		"As far as they are known; complete tells whether that is all. It reads nothing from the provider: a report does."), s.listPayouts)
	operation(s, api, of(looking(read, "get-payout", "/v1/finance/payouts/{id}", "Look into a payout", "", CodeNotFound),
		"The transactions that went out with it, by their ids, each with the booking that it is of; rows_listed tells whether all are known."), s.getPayout)
}

func describeReport(gate huma.Middlewares) huma.Operation {
	op := looking(gate, "get-report", "/v1/finance/report", "Compare the books of a period", "")
	op.Responses["200"] = &huma.Response{
		Description: "The report. One whose verdict is incomplete has accused nobody, unless all but the payouts was read.",
		Content: map[string]*huma.MediaType{
			"application/json": {Schema: reference("FinanceReport")},
			"text/csv": {Schema: &huma.Schema{
				Type: huma.TypeString, Description: "UTF-8 with a header; one line per figure, amounts in major units. complete is on every line. A cell that a spreadsheet would take for a formula begins with an apostrophe.",
			}},
		},
	}
	return op
}

// financeSchemas are the types of the finance desk, as operatorSchemas are the operators'.
func financeSchemas() []operatorSchema {
	const minor = "Minor units."
	line := func(more map[string]string) map[string]string {
		for _, name := range []string{"category", "currency", "count", "net"} {
			more[name] = ""
		}
		more["amount"], more["fee"] = "Gross, minor units.", minor
		return more
	}
	return []operatorSchema{
		{reflect.TypeFor[finance.Shown](), "FinanceReport", map[string]string{
			"verdict":            "",
			"open":               "How many exceptions are open.",
			"broken":             "How many identities do not hold.",
			"period":             "",
			"from_instant":       "The midnight that the period begins with.",
			"to_instant":         "The midnight that it ends before.",
			"as_of":              "The moment as of which the figures were read.",
			"compared_at":        "When the two sides were compared. A comparison is reported of for a minute; null: they were not compared, see incomplete_because.",
			"complete":           "Whether all that is over was read; it says nothing about what is not over: see verdict. false: nothing here is all there is, and nothing was matched unless payouts_unread.",
			"payouts_unread":     "All but the payouts was read and compared, so that the verdict is incomplete: the provider's report of all activity has none.",
			"incomplete_because": "Why, or up to when a period goes that is not over.",
			"unit":               "Of every amount.",
			"balances":           "The account's balance at the provider, by currency.",
			"categories":         "The provider's transactions, by its reporting category, in the currency of settlement.",
			"days":               "The same day by day.",
			"ours_and_theirs":    "Both sides in the currency that customers were shown.",
			"payouts":            "",
			"identities":         "Equations that must hold to the unit.",
			"pending":            "What nobody can judge yet, and why.",
			"exceptions":         "Those that are open, and those that are signed off.",
			"signed_off":         "Signed periods that touch this one.",
			"not_checked":        "What this report does not speak of.",
		}},
		{reflect.TypeFor[finance.Period](), "FinancePeriod", map[string]string{"from": "The first day.", "to": "The first day after it.", "zone": "Whose days."}},
		{reflect.TypeFor[finance.Balance](), "FinanceBalance", map[string]string{
			"currency": "", "opening": minor, "activity": "Net of everything but payouts.", "payouts": "Negative: money that went to the bank.", "closing": "Opening, activity and payouts together.",
		}},
		{reflect.TypeFor[finance.Category](), "FinanceCategory", line(map[string]string{"ledger_net": "What our ledger has of it."})},
		{reflect.TypeFor[payments.DaySum](), "FinanceDay", line(map[string]string{"day": "Of the period's zone."})},
		{reflect.TypeFor[finance.Side](), "FinanceSide", map[string]string{
			"family": "charges, refunds or disputes.", "currency": "", "ours": minor, "theirs": minor, "difference": "Ours less theirs: explained by exceptions, by what is pending, or by another period.",
		}},
		{reflect.TypeFor[finance.PayoutLine](), "FinancePayout", map[string]string{
			"id": "The provider's.", "currency": "", "amount": minor, "rows": "How many transactions are known to have gone out with it.", "rows_net": "What they come to.",
			"status": "The provider's word; not read: nobody has asked yet.", "created": "", "arrival": "At the bank.",
		}},
		{reflect.TypeFor[finance.Identity](), "FinanceIdentity", map[string]string{"name": "", "currency": "", "left": minor, "right": minor, "holds": ""}},
		{reflect.TypeFor[finance.Pending](), "FinancePending", map[string]string{
			"kind": "", "about": "The payment, refund, dispute or payout.", "booking_id": "Absent: of no single booking.", "amount": minor, "currency": "", "occurred_at": "",
			"until": "When it is judged, or at the bank. Absent: once more of the provider's books was read.", "why": "Why nobody can judge it yet.",
		}},
		{reflect.TypeFor[finance.Item](), "FinanceException", map[string]string{
			"id": "Its number.", "kind": "What does not match; docs/finance.md tells of each.", "about": "The transaction, payment, refund, dispute, payout, event or period.",
			"booking_id": "Absent: of no booking that is known.", "amount": minor, "currency": "", "occurred_at": "Decides which period it belongs to.", "opened_at": "When it was found.",
			"age_hours": "Since it happened.", "why": "In plain words.", "owner": "Who looks after it.", "note": "", "status": "",
			"after_sign_off": "It was found after its period had been signed off.", "signed_off_by": "", "sign_off_reason": "", "ended_at": "When it was signed off or explained.",
		}},
		{reflect.TypeFor[finance.SignedPeriod](), "FinanceSignOff", map[string]string{
			"id": "", "zone": "", "from": "The midnight that the period begins with.", "to": "The midnight that it ends before.", "signed_off_by": "", "reason": "", "signed_off_at": "",
		}},
		{reflect.TypeFor[finance.PayoutList](), "FinancePayouts", map[string]string{
			"period": "", "complete": "false: there may be others.", "incomplete_because": "Why.", "payouts": "The oldest first.",
		}},
		{reflect.TypeFor[FinancePayoutDetail](), "FinancePayoutDetail", map[string]string{
			"payout": "", "rows_listed": "false: there may be other rows.", "rows": "", "next": "Send this as after to have the next page. Not there on the last page.",
		}},
		{reflect.TypeFor[finance.PayoutRow](), "FinancePayoutRow", map[string]string{
			"id": "The provider's, of the transaction.", "category": "The provider's reporting category.", "source_id": "The charge, refund or dispute; empty: none.",
			"booking_id": "Absent: of no booking that is known.", "currency": "", "amount": "Gross, minor units.", "fee": minor, "net": minor, "created": "",
		}},
	}
}

func verdicts() []meaning {
	return []meaning{
		{finance.VerdictClean, "the period is over, was read whole, and every transaction is explained."},
		{finance.VerdictExceptions, "exceptions are open, or an identity is broken."},
		{finance.VerdictUnfinished, "all that was listed is explained, and the period is not over."},
		{finance.VerdictIncomplete, "nobody can tell: not all of the provider's books were read."},
	}
}

func exceptionStatuses() []meaning {
	return []meaning{
		{"open", "somebody has to explain it, or sign it off."},
		{"closed", "a later run has found it explained."},
		{"signed_off", "a person has taken it off the list, with a reason."},
	}
}

// finishFinance says in the document what cannot be said by one line.
func finishFinance(document *huma.OpenAPI) {
	schemas := document.Components.Schemas
	explain(schemas.Map()["FinanceReport"].Properties["verdict"], verdicts())
	explain(schemas.Map()["FinanceException"].Properties["status"], exceptionStatuses())
	schemas.Map()["FinanceExceptions"].AdditionalProperties = nil
	for _, of := range []struct {
		path, name string
		body       reflect.Type
		says       string
	}{
		{"/v1/finance/exceptions/{id}/note", "NoteRequest", reflect.TypeFor[noteRequest](), "The note, the owner, or both."},
		{"/v1/finance/exceptions/{id}/sign-off", "SignOffRequest", reflect.TypeFor[signOffRequest](), "Why."},
		{"/v1/finance/sign-off", "SignOffRequest", reflect.TypeFor[signOffRequest](), "What was checked."},
	} {
		body := document.Paths[of.path].Put.RequestBody
		body.Description = of.says
		body.Content["application/json"].Schema = schemas.Schema(of.body, true, of.name)
	}
}

// financeExamples is what each operation of the finance desk answers, by its id: a day with a charge of which no booking is known.
func financeExamples() map[string]any {
	day := time.Date(2027, 3, 1, 0, 0, 0, 0, time.UTC)
	period := finance.Period{From: "2027-03-01", To: "2027-03-02", Zone: "UTC"}
	booking := exampleID[struct{ uuid.UUID }](2).UUID
	item := finance.Item{
		ID: 17, Kind: finance.ChargedWithoutBooking, About: "txn_1", Amount: pointer(int64(2500)), Currency: pointer("EUR"), OccurredAt: day.Add(9 * time.Hour),
		OpenedAt: day.Add(10 * time.Hour), AgeHours: 30, Why: "no booking of ours has this charge, by its intent or its metadata", Owner: "finance", Status: "open",
	}
	noted, signed := item, item
	noted.Note, noted.Owner = "asked the provider", "bea"
	at := day.Add(26 * time.Hour)
	signed.Status, signed.SignedOffBy, signed.SignOffReason, signed.EndedAt = "signed_off", "bea", "given back by hand", &at
	payout := finance.PayoutLine{ID: "po_1", Currency: "EUR", Amount: 2400, Rows: 1, RowsNet: 2400, Status: "paid", Created: day.Add(20 * time.Hour), Arrival: day.AddDate(0, 0, 2)}
	report := finance.Report{
		Period: period, From: day, To: day.AddDate(0, 0, 1), AsOf: day.Add(40 * time.Hour), Complete: true, Unit: "minor units of the currency beside each amount (ISO 4217)",
		Balances:   []finance.Balance{{Currency: "EUR", Activity: 2400, Payouts: -2400}},
		Categories: []finance.Category{{Category: "charge", Currency: "EUR", Count: 1, Amount: 2500, Fee: 100, Net: 2400, Ledger: 2400}},
		Days:       []payments.DaySum{{Day: "2027-03-01", Category: "charge", Currency: "EUR", Count: 1, Amount: 2500, Fee: 100, Net: 2400}},
		Sides:      []finance.Side{{Family: "charges", Currency: "EUR", Theirs: 2500, Difference: -2500}},
		Payouts:    []finance.PayoutLine{payout}, Exceptions: []finance.Item{item},
		Identities: []finance.Identity{{Name: "opening + activity + payouts = closing", Currency: "EUR", Holds: true}},
		Pending:    []finance.Pending{{Kind: "payout", About: "po_1", Amount: 2400, Currency: "EUR", OccurredAt: day.Add(20 * time.Hour), Why: "what went out with it was not listed from the provider"}},
	}.Shown()
	row := finance.PayoutRow{ID: "txn_1", Category: "charge", SourceID: "ch_1", BookingID: &booking, Currency: "EUR", Amount: 2500, Fee: 100, Net: 2400, Created: day.Add(9 * time.Hour)}
	return map[string]any{
		"get-report": report, "list-exceptions": FinanceExceptions{Exceptions: []finance.Item{item}}, "get-exception": item, "note-exception": noted, "sign-off-exception": signed,
		"sign-off-period": finance.SignedPeriod{ID: booking, Zone: "UTC", From: day, To: day.AddDate(0, 0, 1), SignedOffBy: "bea", Reason: "the day is closed", SignedOffAt: at},
		"list-payouts":    finance.PayoutList{Period: period, Complete: true, Incomplete: []string{}, Payouts: []finance.PayoutLine{payout}},
		"get-payout":      FinancePayoutDetail{PayoutDetail: finance.PayoutDetail{Payout: payout, Listed: true, Rows: []finance.PayoutRow{row}}},
	}
}

// deskSchemas are the types of both desks.
func deskSchemas() []operatorSchema { return append(operatorSchemas(), financeSchemas()...) }
