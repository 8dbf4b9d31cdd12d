package simulate

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"
)

// checkEvents: a booking's events are numbered without a gap, tell what became of it, and are all in the stream, under one id
// each, first deliveries in order (G6).
func (s *schedule) checkEvents(b books) {
	byID := map[string]effectRow{}
	byBooking := map[uuid.UUID][]effectRow{}
	for _, e := range b.effects {
		if e.Kind == "publish" && e.Status != "discarded" { // a marker has its place
			byID[e.ID.String()] = e
			byBooking[e.Booking] = append(byBooking[e.Booking], e)
		}
	}
	for _, booking := range b.bookings {
		s.checkTale(booking, byBooking[booking.ID])
	}
	arrived := map[string]bool{}
	newest := map[string]int64{}
	for _, m := range s.told {
		e, known := byID[m.msgID]
		switch {
		case !known:
			s.fail("G6", "message %s (%s) in the stream is of no event that was committed", m.msgID, m.subject)
			continue
		case m.id != m.msgID, m.subject != "bookings.v1."+e.EventType, m.booking != e.Booking.String(), m.seq != fmt.Sprintf("%010d", e.EventSeq):
			s.fail("G6", "message %s in the stream (%s, number %s of %s) is not its event (%s, number %d)", m.msgID, m.subject, m.seq, m.booking, e.EventType, e.EventSeq)
		}
		seq, err := strconv.ParseInt(m.seq, 10, 64)
		if err != nil {
			s.fail("G6", "message %s has the number %q", m.msgID, m.seq)
		}
		if seq > newest[m.booking]+1 {
			s.fail("G6", "event %d of booking %s was delivered before event %d", seq, m.booking, newest[m.booking]+1)
		}
		newest[m.booking] = max(newest[m.booking], seq)
		arrived[m.msgID] = true
	}
	for _, booking := range b.bookings {
		for _, e := range byBooking[booking.ID] {
			if !arrived[e.ID.String()] {
				s.fail("G6", "event %d (%s) of booking %s never reached the stream", e.EventSeq, e.EventType, e.Booking)
			}
		}
	}
}

// checkTale compares what the events tell with where the booking stands.
func (s *schedule) checkTale(booking bookingRow, events []effectRow) {
	told := map[string]int{}
	var types []string
	for i, e := range events {
		if e.EventSeq != int64(i+1) {
			s.fail("G6", "event %d of booking %s has the number %d", i+1, booking.ID, e.EventSeq)
		}
		told[e.EventType]++
		types = append(types, e.EventType)
	}
	if int64(len(events)) != booking.EventSeq {
		s.fail("G6", "booking %s has %d events, and counts %d", booking.ID, len(events), booking.EventSeq)
	}
	if len(types) == 0 || types[0] != "held" || told["held"] != 1 {
		s.fail("G6", "booking %s: the first of its events is not the only held: %v", booking.ID, types)
	}
	if told[booking.Status] != 1 {
		s.fail("G6", "booking %s is %s, and its events are %v", booking.ID, booking.Status, types)
	}
	for _, end := range []string{"confirmed", "expired", "cancelled", "failed"} {
		allowed := end == booking.Status || end == "confirmed" && booking.Status == "cancelled" &&
			slices.Index(types, "confirmed") < slices.Index(types, "cancelled")
		if told[end] > 0 && !allowed {
			s.fail("G6", "booking %s is %s, and its events are %v", booking.ID, booking.Status, types)
		}
	}
}

// checkTold: no more declines and challenges are told of than there were at the provider (G6). An update that was refused is a
// decline, too.
func (s *schedule) checkTold(b books) {
	happened := map[string]int{} // by what and intent
	after := ""
	for more := true; more; {
		page, again, err := s.site.gateway.Events(s.ctx, []string{"payment_intent.payment_failed", "payment_intent.requires_action"},
			s.site.sim.Now().Add(-365*24*time.Hour), s.site.sim.Now().Add(time.Hour), after)
		if err != nil {
			s.broken(fmt.Errorf("list the provider's events: %w", err))
		}
		for _, e := range page {
			happened[e.Type+" "+e.IntentID]++
			after = e.ID
		}
		more = again
	}
	refused := map[string]bool{} // by key: the answer of the send that was carried out may be lost, and only a later one bring it
	for _, e := range b.journal {
		if e.Operation == "payment_intents.update" && e.Status/100 == 4 && !refused[e.IdempotencyKey] {
			refused[e.IdempotencyKey] = true
			happened["payment_intent.payment_failed "+e.Object]++
		}
	}
	for _, booking := range b.bookings {
		told := map[string]int{}
		for _, e := range b.effects {
			if e.Booking == booking.ID {
				told[e.EventType]++
			}
		}
		for _, c := range []struct{ event, what string }{{"payment_declined", "payment_failed"}, {"action_required", "requires_action"}} {
			if n := happened["payment_intent."+c.what+" "+booking.Intent]; told[c.event] > n {
				s.fail("G6", "booking %s: %s was told %d times, and happened %d times", booking.ID, c.event, told[c.event], n)
			}
		}
	}
}
