package stripesim

import (
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// serveControl answers the control surface: JSON in and out, and never subject to faults.
func (s *Simulator) serveControl(rw http.ResponseWriter, r *http.Request) {
	host, _, _ := net.SplitHostPort(r.RemoteAddr)
	if ip := net.ParseIP(host); !s.cfg.OpenControl && (ip == nil || !ip.IsLoopback()) {
		reply(rw, http.StatusForbidden, object{"error": "the control surface is for loopback only"})
		return
	}
	calls := s.controlCalls()
	mux := http.NewServeMux()
	for pattern, call := range calls {
		mux.HandleFunc(pattern, call)
	}
	mux.HandleFunc("/", func(rw http.ResponseWriter, r *http.Request) {
		known := strings.Join(slices.Sorted(maps.Keys(calls)), ", ")
		reply(rw, http.StatusNotFound, object{"error": "there is no " + r.Method + " " + r.URL.Path + "; there are " + known})
	})
	mux.ServeHTTP(rw, r)
}

func (s *Simulator) controlCalls() map[string]http.HandlerFunc {
	return map[string]http.HandlerFunc{
		"GET /_sim/journal": s.controlJournal,
		"GET /_sim/ledger":  func(rw http.ResponseWriter, _ *http.Request) { reply(rw, http.StatusOK, s.Ledger()) },
		"GET /_sim/faults":  func(rw http.ResponseWriter, _ *http.Request) { reply(rw, http.StatusOK, s.Faults()) },
		"POST /_sim/faults": s.controlAddFault,
		"DELETE /_sim/faults": func(rw http.ResponseWriter, _ *http.Request) {
			s.ClearFaults()
			reply(rw, http.StatusOK, object{})
		},
		"DELETE /_sim/faults/{id}": s.controlRemoveFault,
		"GET /_sim/clock":          func(rw http.ResponseWriter, _ *http.Request) { s.replyClock(rw, s.Now()) },
		"POST /_sim/clock":         s.controlClock,
		"POST /_sim/actions":       s.controlAction,
		"GET /_sim/settlement":     func(rw http.ResponseWriter, _ *http.Request) { reply(rw, http.StatusOK, s.Settlement()) },
		"POST /_sim/settlement":    s.controlSettlement,
		"POST /_sim/webhooks":      s.controlWebhooks,
		"GET /_sim/webhooks":       s.controlDeliveries,
		"POST /_sim/webhooks/release": func(rw http.ResponseWriter, _ *http.Request) {
			reply(rw, http.StatusOK, object{"released": s.ReleaseWebhooks()})
		},
		"POST /_sim/reset": func(rw http.ResponseWriter, _ *http.Request) {
			s.Reset()
			reply(rw, http.StatusOK, object{})
		},
	}
}

func (s *Simulator) controlJournal(rw http.ResponseWriter, r *http.Request) {
	var after int64
	if text := r.URL.Query().Get("after"); text != "" {
		var err error
		if after, err = strconv.ParseInt(text, 10, 64); err != nil {
			complain(rw, "after must be a sequence number")
			return
		}
	}
	reply(rw, http.StatusOK, s.Journal(after))
}

func (s *Simulator) controlAddFault(rw http.ResponseWriter, r *http.Request) {
	var fault Fault
	if !decode(rw, r, &fault) {
		return
	}
	if err := s.CheckFault(fault); err != nil {
		complain(rw, err.Error())
		return
	}
	reply(rw, http.StatusOK, object{"id": s.AddFault(fault)})
}

func (s *Simulator) controlRemoveFault(rw http.ResponseWriter, r *http.Request) {
	if !s.RemoveFault(r.PathValue("id")) {
		reply(rw, http.StatusNotFound, object{"error": "no such fault is armed"})
		return
	}
	reply(rw, http.StatusOK, object{})
}

func (s *Simulator) controlClock(rw http.ResponseWriter, r *http.Request) {
	var request struct {
		Advance string    `json:"advance"`
		StandAt time.Time `json:"stand_at"`
	}
	if !decode(rw, r, &request) {
		return
	}
	if !request.StandAt.IsZero() && request.Advance == "" {
		if err := s.StandAt(request.StandAt); err != nil {
			complain(rw, err.Error())
			return
		}
		s.replyClock(rw, s.Now())
		return
	}
	d, err := time.ParseDuration(request.Advance)
	if err != nil || d < 0 {
		complain(rw, `advance must be a duration that goes forward, such as "25h"`)
		return
	}
	s.replyClock(rw, s.Advance(d))
}

func (s *Simulator) replyClock(rw http.ResponseWriter, now time.Time) {
	reply(rw, http.StatusOK, object{"now": now.UTC(), "offset": time.Until(now).Round(time.Second).String()})
}

func (s *Simulator) controlAction(rw http.ResponseWriter, r *http.Request) {
	var action Action
	if !decode(rw, r, &action) {
		return
	}
	done, err := s.Perform(action)
	if err != nil {
		complain(rw, err.Error())
		return
	}
	reply(rw, http.StatusOK, done)
}

// controlWebhooks says how events are delivered from now on.
func (s *Simulator) controlWebhooks(rw http.ResponseWriter, r *http.Request) {
	var change Webhooks
	if !decode(rw, r, &change) {
		return
	}
	now, err := s.SetWebhooks(change)
	if err != nil {
		complain(rw, err.Error())
		return
	}
	reply(rw, http.StatusOK, object{"mode": now.Mode, "url": now.URL, "signature": orDefault(now.Signature, signatureValid)})
}

// controlDeliveries tells what became of deliveries. The secret is not told.
func (s *Simulator) controlDeliveries(rw http.ResponseWriter, _ *http.Request) {
	now, _ := s.SetWebhooks(Webhooks{}) // changes nothing
	w := s.world.Load()
	w.mu.Lock()
	held := len(w.held)
	w.mu.Unlock()
	reply(rw, http.StatusOK, object{"mode": now.Mode, "url": now.URL, "held": held, "deliveries": s.Deliveries()})
}

// decode reads a control request.
func decode(rw http.ResponseWriter, r *http.Request, into any) bool {
	err := strictly(io.LimitReader(r.Body, maxBody), into)
	if err != nil {
		complain(rw, "the body must be one JSON object: "+err.Error())
		return false
	}
	return true
}

// strictly reads one JSON object. An unknown member is refused: a misspelt fault would otherwise test nothing.
func strictly(body io.Reader, into any) error {
	decoder := json.NewDecoder(body)
	decoder.DisallowUnknownFields()
	err := decoder.Decode(into)
	switch {
	case errors.Is(err, io.EOF):
		return errors.New("there is none")
	case err == nil && decoder.Decode(&struct{}{}) != io.EOF:
		return errors.New("something follows the object")
	}
	return err
}

func complain(rw http.ResponseWriter, message string) {
	reply(rw, http.StatusBadRequest, object{"error": message})
}

func reply(rw http.ResponseWriter, status int, body any) {
	rw.Header().Set("Content-Type", "application/json")
	rw.WriteHeader(status)
	_ = json.NewEncoder(rw).Encode(body) // a client that left has nothing to be told
}
