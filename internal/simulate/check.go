package simulate

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"holdfast/domain"
	"holdfast/internal/bookings"
	"holdfast/payments/stripesim"
)

// books is all that a schedule has left: our rows, the stream, and the provider's own account of what happened.
type books struct {
	bookings []bookingRow
	calls    []callRow
	effects  []effectRow
	refunds  []refundRow
	keys     []keyRow
	actions  []actionRow
	ledger   stripesim.Ledger
	journal  []stripesim.JournalEntry
}

type bookingRow struct {
	ID       uuid.UUID
	Client   uuid.UUID
	Status   string
	Amount   int64
	Currency string
	Quantity int
	EventSeq int64
	Active   int // places that it takes

	Payment       uuid.UUID
	PaymentStatus string
	PaymentAmount int64
	Received      int64
	Card          int
	Intent        string

	CancelHours  *float64 // so many hours before its start the customer asked to cancel it
	CancelRefund *int64   // what was decided then
	Policy       domain.RefundPolicy
}

type callRow struct {
	Payment   uuid.UUID
	Operation string
	Key       string
}

type effectRow struct {
	ID        uuid.UUID
	Booking   uuid.UUID
	Kind      string
	Status    string
	EventType string
	EventSeq  int64
}

type refundRow struct {
	ID      uuid.UUID
	Booking uuid.UUID
	Amount  int64
	Status  string
	Reason  string
}

type keyRow struct {
	Client  uuid.UUID
	Route   string
	Key     string
	Booking *uuid.UUID
	Status  *int16
}

type actionRow struct {
	Action string
	Effect *uuid.UUID
	Actor  string
	Reason string
	Whole  bool // before and after are there
}

func (s *schedule) readBooks() books {
	return books{
		bookings: rows[bookingRow](s, `
			SELECT b.id, b.client_id AS client, b.status, b.amount, b.currency, b.quantity, b.event_seq,
			       (SELECT count(*) FROM allocations a WHERE a.booking_id = b.id AND a.active) AS active,
			       p.id AS payment, p.status AS payment_status, p.amount AS payment_amount, p.amount_received AS received, p.card,
			       coalesce(p.provider_intent_id, '') AS intent,
			       extract(epoch FROM lower(b.during) - b.cancel_requested_at)::float8 / 3600 AS cancel_hours, b.cancel_refund,
			       r.refund_policy AS policy
			  FROM bookings b JOIN resources r ON r.id = b.resource_id LEFT JOIN payments p ON p.booking_id = b.id ORDER BY b.created_at`),
		calls: rows[callRow](s, `SELECT payment_id AS payment, operation, key FROM provider_calls ORDER BY first_sent_at`),
		effects: rows[effectRow](s, `
			SELECT id, booking_id AS booking, kind, status, coalesce(event_type, '') AS event_type, coalesce(event_seq, 0) AS event_seq
			  FROM outbox ORDER BY booking_id, event_seq, created_at`),
		refunds: rows[refundRow](s, `
			SELECT r.id, p.booking_id AS booking, r.amount, r.status, r.reason FROM refunds r JOIN payments p ON p.id = r.payment_id ORDER BY r.created_at`),
		keys: rows[keyRow](s, `SELECT client_id AS client, route, key, booking_id AS booking, response_status AS status FROM idempotency_keys ORDER BY created_at`),
		actions: rows[actionRow](s, `
			SELECT action, effect_id AS effect, actor, reason, before <> 'null' AND after <> 'null' AS whole FROM operator_actions ORDER BY at`),
		ledger:  s.site.sim.Ledger(),
		journal: s.site.sim.Journal(0),
	}
}

// check compares the books with what was promised. Each check is by itself, and none asks the code that it checks.
func (s *schedule) check() {
	s.look()
	if err := s.listen(); err != nil {
		s.broken(err)
	}
	b := s.readBooks()
	for _, check := range []func(books){
		s.checkKeys, s.checkSlots, s.checkCharges, s.checkCards, s.checkKept, s.checkDoubts, s.checkEvents, s.checkActions,
		s.checkRefunds, s.checkSends, s.checkSecrets, s.checkOwners, s.checkHolds,
	} {
		check(b)
	}
	s.checkTold(b)
	if len(s.violations) > 0 {
		s.account(b)
	}
}

// checkKeys: one booking for each key that asked for one, and no other booking (G1).
func (s *schedule) checkKeys(b books) {
	const accepting = "/v1/bookings"
	made := map[uuid.UUID]int{}
	asked := map[string]bool{}
	for _, q := range s.requests {
		asked[q.key] = true
	}
	for _, k := range b.keys {
		if !asked[k.Key] {
			s.fail("G1", "key %s was asked by nobody", k.Key)
		}
		if k.Status == nil {
			s.fail("G1", "key %s has no answer", k.Key)
		}
		if k.Route == accepting && k.Booking != nil {
			made[*k.Booking]++
		}
	}
	for _, booking := range b.bookings {
		if made[booking.ID] != 1 {
			s.fail("G1", "booking %s has %d keys that made it", booking.ID, made[booking.ID])
		}
	}
	for _, q := range s.requests {
		if q.book && q.answer != nil {
			if n := s.keysOf(b, q.key, accepting); n != 1 {
				s.fail("G1", "%s was answered and has %d rows", q.key, n)
			}
		}
	}
}

func (s *schedule) keysOf(b books, key, route string) int {
	n := 0
	for _, k := range b.keys {
		if k.Key == key && k.Route == route {
			n++
		}
	}
	return n
}

// checkSlots: no two active allocations overlap, and a place is taken by who has not ended and by nobody else (G2).
func (s *schedule) checkSlots(b books) {
	if n := scalar[int](s, `
		SELECT count(*) FROM allocations x JOIN allocations y
		    ON x.resource_id = y.resource_id AND x.place = y.place AND x.during && y.during AND x.booking_id < y.booking_id
		 WHERE x.active AND y.active`); n > 0 {
		s.fail("G2", "%d pairs of bookings have one place at one time", n)
	}
	for _, booking := range b.bookings {
		want := booking.Quantity
		if ended(booking.Status) {
			want = 0
		}
		if booking.Active != want {
			s.fail("G2", "booking %s is %s, is for %d places, and takes %d", booking.ID, booking.Status, booking.Quantity, booking.Active)
		}
	}
}

func ended(status string) bool {
	return slices.Contains([]string{"expired", "cancelled", "failed"}, status)
}

// units turns our minor units into the provider's, for the currencies that a schedule prices in.
func units(amount int64, currency string) int64 {
	switch currency {
	case "ISK":
		return amount * 100
	case "MGA":
		return amount / 100
	default:
		return amount
	}
}

// charged are the succeeded charges of a booking: by its id in their metadata, or by its intent.
func (b books) charged(booking bookingRow) []stripesim.LedgerCharge {
	var found []stripesim.LedgerCharge
	for _, c := range b.ledger.Charges {
		if c.Status == "succeeded" && (c.Metadata["booking_id"] == booking.ID.String() || booking.Intent != "" && c.PaymentIntent == booking.Intent) {
			found = append(found, c)
		}
	}
	return found
}

// checkCharges: the money moves at most once, and exactly the price (G3).
func (s *schedule) checkCharges(b books) {
	if err := b.ledger.Check(); err != nil {
		s.fail("G3", "the provider's ledger: %s", err)
	}
	known := map[string]bool{}
	for _, booking := range b.bookings {
		charges := b.charged(booking)
		if len(charges) > 1 {
			s.fail("G3", "booking %s was charged %d times", booking.ID, len(charges))
		}
		for _, c := range charges {
			known[c.ID] = true
			if c.Amount != units(booking.Amount, booking.Currency) || !strings.EqualFold(c.Currency, booking.Currency) {
				s.fail("G3", "booking %s of %d %s was charged %d %s", booking.ID, booking.Amount, booking.Currency, c.Amount, c.Currency)
			}
		}
		succeeded := booking.PaymentStatus == "succeeded"
		if succeeded != (len(charges) == 1) {
			s.fail("G3", "payment of booking %s is %s, and the provider has taken the money %d times", booking.ID, booking.PaymentStatus, len(charges))
		}
		if succeeded && booking.Received != booking.Amount || booking.PaymentAmount != booking.Amount {
			s.fail("G3", "booking %s costs %d; its payment is of %d, of which %d were received", booking.ID, booking.Amount, booking.PaymentAmount, booking.Received)
		}
	}
	for _, c := range b.ledger.Charges {
		if c.Status == "succeeded" && !known[c.ID] {
			s.fail("G3", "charge %s is of no booking", c.ID)
		}
	}
}

// checkKept: of a booking that stands we keep its price, but for what finance gave back; of one that its customer has cancelled
// what its policy keeps, of any other nothing; and one that ended for lack of money has never taken any, not even for a while (G4).
func (s *schedule) checkKept(b books) {
	for _, booking := range b.bookings {
		var taken int64
		for _, c := range b.charged(booking) {
			taken += c.AmountCaptured
		}
		ours, byHand := b.returned(booking)
		given := map[string]int64{} // by our rows
		asked := 0
		for _, f := range b.refunds {
			if f.Booking == booking.ID && f.Status == "succeeded" {
				given[f.Reason] += f.Amount
			}
			if f.Booking == booking.ID && f.Reason != "cancellation" && f.Reason != "late_success" {
				asked++ // others had a hand in it, in vain maybe
			}
		}
		owed := int64(0) // by us, beside what finance has given back
		switch {
		case booking.Status == "confirmed" || taken == 0:
		case booking.Status != "cancelled":
			owed = booking.Amount
		case booking.CancelRefund == nil:
			s.fail("G4", "booking %s is cancelled, and nobody asked for it", booking.ID)
		case given["late_success"] > 0: // taken after it was over
			owed = booking.Amount
		default:
			owed = *booking.CancelRefund
			alone := asked == 0 && !b.disputed(booking)
			if by := policyGives(booking.Policy, booking.Amount, booking.Currency, *booking.CancelHours); owed > by || alone && owed != by {
				s.fail("G4", "booking %s was cancelled %f hours before its start: its policy gives %d of %d back, and %d was decided",
					booking.ID, *booking.CancelHours, by, booking.Amount, owed)
			}
		}
		owed = min(owed, booking.Amount-given["requested"]-given["dashboard"])
		if want := units(owed+given["requested"], booking.Currency); asked == 0 && ours != want || ours < want && !b.inVain(booking) {
			s.fail("G4", "booking %s is %s: %d were taken, %d given back by us and %d at the dashboard, and %d are to go back",
				booking.ID, booking.Status, taken, ours, byHand, want)
		}
		if (booking.Status == "expired" || booking.Status == "failed") && taken > 0 {
			s.fail("G4", "booking %s is %s although the money was taken", booking.ID, booking.Status)
		}
	}
}

// disputed tells whether a bank has ever disputed the booking's charge, or asked about it.
func (b books) disputed(booking bookingRow) bool {
	return booking.Intent != "" && slices.ContainsFunc(b.ledger.Disputes, func(d stripesim.LedgerDispute) bool { return d.PaymentIntent == booking.Intent })
}

// inVain tells whether a refund of the booking that was not owed has failed: while it was on its way, less was left for others.
func (b books) inVain(booking bookingRow) bool {
	return slices.ContainsFunc(b.refunds, func(f refundRow) bool {
		return f.Booking == booking.ID && f.Status == "failed" && (f.Reason == "requested" || f.Reason == "dashboard")
	})
}

// checkDoubts: nothing is left in doubt or undone (G5).
func (s *schedule) checkDoubts(b books) {
	for _, booking := range b.bookings {
		if booking.Status != "confirmed" && !ended(booking.Status) {
			s.fail("G5", "booking %s is %s for ever", booking.ID, booking.Status)
		}
		if slices.Contains([]string{"in_doubt", "processing"}, booking.PaymentStatus) {
			s.fail("G5", "payment of booking %s is %s for ever", booking.ID, booking.PaymentStatus)
		}
	}
	for _, e := range b.effects {
		if !slices.Contains([]string{"done", "not_needed", "discarded"}, e.Status) {
			s.fail("G5", "the %s of booking %s is %s for ever", e.Kind, e.Booking, e.Status)
		}
	}
}

// checkActions: each accepted act of an operator has left one row, whole, and nothing else has left any (G7).
func (s *schedule) checkActions(b books) {
	left := map[string][]actionRow{}
	for _, row := range b.actions {
		left[row.Reason] = append(left[row.Reason], row)
	}
	for _, a := range s.acted {
		found := left[a.reason]
		delete(left, a.reason)
		if least, most := count(a.done), count(a.done || a.unknown); len(found) < least || len(found) > most {
			s.fail("G7", "%s (%s) has left %d rows, and should have left %d to %d", a.action, a.reason, len(found), least, most)
			continue
		}
		for _, row := range found {
			same := a.effect == nil && row.Effect == nil || a.effect != nil && row.Effect != nil && *a.effect == *row.Effect
			if row.Action != a.action || row.Actor != string(operator) || !row.Whole || !same {
				s.fail("G7", "%s (%s) has left the row %+v", a.action, a.reason, row)
			}
		}
	}
	for _, q := range s.requests {
		if q.audit == "" {
			continue
		}
		found := left[q.audit]
		delete(left, q.audit)
		if least, most := count(q.answer != nil && q.answer.Status == http.StatusCreated), count(q.answer == nil || q.answer.Status == http.StatusCreated); len(found) < least || len(found) > most {
			s.fail("G7", "%s (%s) has left %d rows, and should have left %d to %d", q.what, q.key, len(found), least, most)
		}
		for _, row := range found {
			if row.Action != "refund" || row.Actor != string(operator) || !row.Whole || row.Effect == nil {
				s.fail("G7", "%s (%s) has left the row %+v", q.what, q.key, row)
			}
		}
	}
	for reason := range left {
		s.fail("G7", "a row tells of what nobody did: %s", reason)
	}
}

func count(is bool) int {
	if is {
		return 1
	}
	return 0
}

// returned is what went back to the customer by the ledger: by requests of ours, and at the dashboard.
func (b books) returned(booking bookingRow) (ours, byHand int64) {
	for _, c := range b.charged(booking) {
		for _, f := range b.ledger.Refunds {
			switch {
			case f.Charge != c.ID || f.Status != "succeeded":
			case f.IdempotencyKey == "":
				byHand += f.Amount
			default:
				ours += f.Amount
			}
		}
	}
	return ours, byHand
}

// checkRefunds: no more is given back than was taken, by our rows and by the ledger, and they agree on what we gave.
func (s *schedule) checkRefunds(b books) {
	for _, booking := range b.bookings {
		var rows, taken int64
		for _, f := range b.refunds {
			if f.Booking == booking.ID && f.Status == "succeeded" && f.Reason != "dashboard" {
				rows += f.Amount
			}
		}
		for _, c := range b.charged(booking) {
			taken += c.AmountCaptured
		}
		ours, byHand := b.returned(booking)
		if ours+byHand > taken || rows > booking.Amount {
			s.fail("G3", "booking %s: %d of %d were given back; our rows say %d of %d", booking.ID, ours+byHand, taken, rows, booking.Amount)
		}
		if ours != units(rows, booking.Currency) {
			s.fail("G4", "booking %s: our rows say that we gave %d back, the ledger %d", booking.ID, rows, ours)
		}
	}
}

var keyShape = regexp.MustCompile(`^hf:[0-9a-f-]{36}:(create|update|confirm|cancel|refund):[1-9][0-9]*$`)

// horizon is how long after its first send a key may be sent, and keeps a little for sends that are under way.
const horizon = 20*time.Hour + 10*time.Minute

// checkSends: every send has a key that was recorded, of the documented form, with one set of parameters, within its horizon;
// and the intention to take the money had one key for each card.
func (s *schedule) checkSends(b books) {
	recorded := map[string]callRow{}
	for _, c := range b.calls {
		recorded[c.Key] = c
	}
	type use struct {
		params string
		first  time.Time
	}
	uses := map[string]use{}
	confirms := map[uuid.UUID]map[string]bool{}
	unseen := map[string]bool{} // intents that got another card and were not read since
	for _, e := range b.journal {
		if e.Method != http.MethodPost {
			if e.Operation == "payment_intents.retrieve" && e.Status == http.StatusOK {
				delete(unseen, e.Object)
			}
			continue
		}
		switch _, again := uses[e.IdempotencyKey]; {
		case e.Operation == "payment_intents.update" && e.Executed:
			unseen[e.Object] = true
		case e.Operation == "payment_intents.confirm" && unseen[e.Object] && !again:
			s.fail("G3", "another card was confirmed under %s before the intent was seen to hold it", e.IdempotencyKey)
		}
		key := e.IdempotencyKey
		call, known := recorded[key]
		switch {
		case key == "":
			s.fail("G3", "%s was sent without a key", e.Operation)
			continue
		case !keyShape.MatchString(key):
			s.fail("G3", "%s was sent under %q, which is no key of ours", e.Operation, key)
		case !known:
			s.fail("G3", "%s was sent under %s, which was never recorded", e.Operation, key)
		}
		first, again := uses[key]
		switch {
		case !again:
			uses[key] = use{params: e.ParamsSHA256, first: e.Arrived}
		case first.params != e.ParamsSHA256:
			s.fail("G3", "%s was sent with other parameters than before", key)
		case e.Arrived.Sub(first.first) > horizon:
			s.fail("G3", "%s was sent %s after its first send", key, e.Arrived.Sub(first.first).Round(time.Minute))
		}
		if e.Operation == "payment_intents.confirm" {
			if confirms[call.Payment] == nil {
				confirms[call.Payment] = map[string]bool{}
			}
			confirms[call.Payment][key] = true
		}
	}
	for _, booking := range b.bookings {
		if n := len(confirms[booking.Payment]); n > booking.Card {
			s.fail("G3", "the money of booking %s was asked for under %d keys, for %d cards", booking.ID, n, booking.Card)
		}
	}
}

// checkCarried: what is not decided yet is somebody's, at any moment: a held booking whose money is open has a charge that is not
// finished, and an ending one a cancel (G5). It would be decided in the end all the same, by the end of the hold.
func (s *schedule) checkCarried() {
	for _, alone := range rows[struct {
		ID      uuid.UUID
		Status  string
		Payment string
	}](s, `
		SELECT b.id, b.status, p.status AS payment
		  FROM bookings b JOIN payments p ON p.booking_id = b.id
		 WHERE (b.status = 'held' AND p.status IN ('pending', 'processing', 'in_doubt') OR b.status = 'ending')
		   AND NOT EXISTS (SELECT FROM outbox o WHERE o.booking_id = b.id AND o.status IN ('pending', 'in_doubt', 'parked')
		                    AND o.kind = CASE b.status WHEN 'held' THEN 'charge' ELSE 'cancel' END)
		 ORDER BY b.created_at`) {
		s.fail("G5", "booking %s is %s, its payment %s, and nobody's work", alone.ID, alone.Status, alone.Payment)
	}
}

// checkHolds: no send that serves the charge is recorded after the end of the hold, by the one clock that judges it (G4).
func (s *schedule) checkHolds(books) {
	for _, late := range rows[struct {
		Key   string
		After time.Duration
	}](s, `
		SELECT c.key, c.last_sent_at - b.hold_expires_at AS after
		  FROM provider_calls c JOIN payments p ON p.id = c.payment_id JOIN bookings b ON b.id = p.booking_id
		 WHERE c.operation IN ('create', 'update', 'confirm') AND c.last_sent_at > b.hold_expires_at + interval '1 second'
		 ORDER BY c.key`) {
		s.fail("G4", "%s was sent %s after the end of the hold", late.Key, late.After)
	}
}

// checkOwners: nobody sees another client's booking (G9).
func (s *schedule) checkOwners(b books) {
	for _, booking := range b.bookings {
		for _, client := range s.clients {
			if _, err := bookings.Get(s.ctx, s.site.db, client, domain.BookingID{UUID: booking.ID}); (err == nil) != (client.UUID == booking.Client) {
				s.fail("G9", "client %s asks for booking %s of client %s and is answered %v", client, booking.ID, booking.Client, err)
			}
		}
	}
}

// checkSecrets: nothing that pays is where it need not be (G9, the cheap form).
func (s *schedule) checkSecrets(books) {
	if n := scalar[int](s, `
		SELECT (SELECT count(*) FROM outbox o WHERE o::text ~ 'pm_|_secret_')
		     + (SELECT count(*) FROM river_job j WHERE j::text ~ 'pm_|_secret_')
		     + (SELECT count(*) FROM idempotency_keys k WHERE k.response_body ~ 'pm_|_secret_')
		     + (SELECT count(*) FROM provider_events e WHERE e::text ~ 'pm_|_secret_')
		     + (SELECT count(*) FROM operator_actions a WHERE a::text ~ 'pm_|_secret_')`); n > 0 {
		s.fail("G9", "%d rows hold a card's token or a client secret", n)
	}
	for _, m := range s.told {
		if strings.Contains(string(m.body), "pm_") || strings.Contains(string(m.body), "_secret_") {
			s.fail("G9", "event %s in the stream holds a card's token or a client secret", m.id)
		}
	}
}

// account writes the provider's ledger and the ends of all bookings into the history.
func (s *schedule) account(b books) {
	for _, booking := range b.bookings {
		s.tell("booking %s: %s, payment %s, %d %s, card %d, intent %s, takes %d places", booking.ID, booking.Status, booking.PaymentStatus,
			booking.Amount, booking.Currency, booking.Card, booking.Intent, booking.Active)
	}
	for _, c := range b.ledger.Charges {
		s.tell("ledger: charge %s of %s: %s, %d %s, intent %s, key %q", c.ID, c.Metadata["booking_id"], c.Status, c.Amount, c.Currency, c.IntentStatus, c.IdempotencyKey)
	}
	for _, f := range b.ledger.Refunds {
		s.tell("ledger: refund %s of charge %s: %s, %d %s, key %q", f.ID, f.Charge, f.Status, f.Amount, f.Currency, f.IdempotencyKey)
	}
	for _, e := range b.journal {
		s.tell("journal: %d %s %s, key %q, executed %t, replayed %t, HTTP %d %s", e.Seq, e.Operation, e.Object, e.IdempotencyKey, e.Executed, e.Replayed, e.Status, e.Fault)
	}
	for _, e := range b.effects {
		s.tell("effect: %s %s of booking %s: %s", e.Kind, e.EventType, e.Booking, e.Status)
	}
}
