package stripesim

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Webhooks says where events are delivered, and how. In a control call an empty member keeps what was set before.
type Webhooks struct {
	// Mode is one of
	//   - auto: each event at once, and again until it is taken;
	//   - hold: not before release;
	//   - drop: never;
	//   - duplicate: each event twice, and a second event of its own id for the same change;
	//   - reorder: what happens within a moment is delivered newest first.
	Mode string `json:"mode"`
	// URL of the endpoint; none is delivered without one.
	URL string `json:"url"`
	// Secret that deliveries are signed with. Several, separated by commas, sign once each, as while a secret is rolled.
	Secret string `json:"secret"`
	// APIVersion of the events; default: the simulator's.
	APIVersion string `json:"api_version"`
	// Signature is one of
	//   - valid (default);
	//   - wrong: made with another secret;
	//   - old, future: right, and dated an hour away;
	//   - none: the header is left out.
	Signature string `json:"signature"`
}

const (
	modeAuto      = "auto"
	modeHold      = "hold"
	modeDrop      = "drop"
	modeDuplicate = "duplicate"
	modeReorder   = "reorder"
)

const (
	signatureValid  = "valid"
	signatureWrong  = "wrong"
	signatureOld    = "old"
	signatureFuture = "future"
	signatureNone   = "none"
)

func signatures() []string {
	return []string{signatureValid, signatureWrong, signatureOld, signatureFuture, signatureNone}
}

func webhookModes() []string {
	return []string{modeAuto, modeHold, modeDrop, modeDuplicate, modeReorder}
}

// Delivery is what became of one event at the endpoint.
type Delivery struct {
	Event    string `json:"event"`
	Type     string `json:"type"`
	Attempts int    `json:"attempts"`
	Status   int    `json:"status"` // of the newest answer; 0: none
	Done     bool   `json:"done"`   // taken with a 2xx
	GivenUp  bool   `json:"given_up"`
}

const (
	reorderWindow   = 100 * time.Millisecond
	deliveryTimeout = 10 * time.Second
	webhookTries    = 8 // with the default back-off an hour and a half of virtual time
)

// SetWebhooks changes how events are delivered from now on, and returns what holds then. Empty fields stay as they were.
// What is held stays held.
func (s *Simulator) SetWebhooks(change Webhooks) (Webhooks, error) {
	if change.Mode != "" && !slices.Contains(webhookModes(), change.Mode) {
		return Webhooks{}, fmt.Errorf("mode must be auto, hold, drop, duplicate or reorder")
	}
	if change.Signature != "" && !slices.Contains(signatures(), change.Signature) {
		return Webhooks{}, fmt.Errorf("signature must be one of %s", strings.Join(signatures(), ", "))
	}
	if u, err := url.Parse(change.URL); change.URL != "" && (err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https") {
		return Webhooks{}, fmt.Errorf("url must be such as http://127.0.0.1:8080/v1/webhooks/stripe")
	}
	w := s.world.Load()
	w.mu.Lock()
	defer w.mu.Unlock()
	h := &w.webhooks
	h.Mode = orDefault(change.Mode, h.Mode)
	h.URL = orDefault(change.URL, h.URL)
	h.Secret = orDefault(change.Secret, h.Secret)
	h.APIVersion = orDefault(change.APIVersion, h.APIVersion)
	h.Signature = orDefault(change.Signature, h.Signature)
	return *h, nil
}

// ReleaseWebhooks delivers what is held, oldest first, or newest first in mode reorder, and returns how many events that
// are. It does not wait for the answers.
func (s *Simulator) ReleaseWebhooks() int {
	w := s.world.Load()
	w.mu.Lock()
	defer w.mu.Unlock()
	n := len(w.held)
	w.flush(w.webhooks.Mode == modeReorder)
	return n
}

// Deliveries returns what became of every event that was delivered, in the order of their first attempt.
func (s *Simulator) Deliveries() []Delivery {
	w := s.world.Load()
	w.mu.Lock()
	defer w.mu.Unlock()
	all := make([]Delivery, 0, len(w.deliveries))
	for _, d := range w.deliveries {
		all = append(all, *d)
	}
	return all
}

// announce hands a new event to the endpoint, as the mode says. The caller holds mu: an event may well arrive before the
// answer to the request that caused it.
func (w *world) announce(e *event) {
	if w.webhooks.URL == "" {
		return
	}
	switch w.webhooks.Mode {
	case modeDrop:
	case modeHold:
		w.held = append(w.held, e)
	case modeReorder:
		if w.held = append(w.held, e); len(w.held) > 1 {
			return // the window is open
		}
		w.background(func(context.Context) {
			if w.pause(reorderWindow) {
				w.mu.Lock()
				defer w.mu.Unlock()
				if w.webhooks.Mode == modeReorder {
					w.flush(true)
				}
			}
		})
	case modeDuplicate:
		twin := *e
		twin.id = newID("evt_3", 23)
		twin.order, _ = w.birth()
		w.events = append(w.events, &twin)
		for _, each := range []*event{e, e, &twin} {
			w.post(each)
		}
	default:
		w.post(e)
	}
}

// post delivers one event in its own time. The caller holds mu.
func (w *world) post(e *event) {
	d := w.opened(e)
	w.background(func(ctx context.Context) { w.insist(ctx, e, d) })
}

// flush delivers what is held one after the other, each without waiting for the retries of those before. The caller
// holds mu.
func (w *world) flush(newestFirst bool) {
	held := w.held
	w.held = nil
	if newestFirst {
		slices.Reverse(held)
	}
	records := make([]*Delivery, len(held))
	for i, e := range held {
		records[i] = w.opened(e)
	}
	w.background(func(ctx context.Context) {
		for i, e := range held {
			if !w.attempt(ctx, e, records[i]) {
				w.background(func(ctx context.Context) { w.insist(ctx, e, records[i]) })
			}
		}
	})
}

func (w *world) opened(e *event) *Delivery {
	d := &Delivery{Event: e.id, Type: e.kind}
	w.deliveries = append(w.deliveries, d)
	return d
}

// insist delivers an event until it is taken, the tries are spent or the simulator ends. The pauses grow, and run on the
// virtual clock.
func (w *world) insist(ctx context.Context, e *event, d *Delivery) {
	for {
		w.mu.Lock()
		tried := d.Attempts
		w.mu.Unlock()
		if tried > 0 && !w.until(w.cfg.WebhookBackoff<<(2*(tried-1))) {
			return
		}
		if w.attempt(ctx, e, d) {
			return
		}
		w.mu.Lock()
		d.GivenUp = d.Attempts >= webhookTries
		over := d.GivenUp
		w.mu.Unlock()
		if over || w.done.Err() != nil {
			return
		}
	}
}

// until waits for d of virtual time, and tells whether the simulator is still there.
func (w *world) until(d time.Duration) bool {
	w.mu.Lock()
	due := w.now().Add(d)
	for {
		left, advanced := due.Sub(w.now()), w.advanced
		w.mu.Unlock()
		if left <= 0 {
			return w.done.Err() == nil
		}
		timer := time.NewTimer(left)
		select {
		case <-timer.C:
		case <-advanced:
		case <-w.done.Done():
			timer.Stop()
			return false
		}
		timer.Stop()
		w.mu.Lock()
	}
}

// attempt delivers an event once, signed anew, and tells whether it was taken: any answer but a 2xx is a failure, a
// redirection too.
func (w *world) attempt(ctx context.Context, e *event, d *Delivery) bool {
	w.mu.Lock()
	to, body := w.webhooks, encode(e.renderFor(w.webhooks.APIVersion))
	d.Attempts++
	d.Status = 0
	w.mu.Unlock()
	status := w.send(ctx, to, body)
	w.mu.Lock()
	defer w.mu.Unlock()
	d.Status, d.Done = status, status/100 == 2
	return d.Done
}

// send makes the request and returns the status of its answer, or 0.
func (w *world) send(ctx context.Context, to Webhooks, body []byte) int {
	w.slots <- struct{}{}
	defer func() { <-w.slots }()
	ctx, cancel := context.WithTimeout(ctx, deliveryTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, to.URL, bytes.NewReader(body))
	if err != nil {
		return 0
	}
	request.Header.Set("Content-Type", "application/json; charset=utf-8")
	request.Header.Set("User-Agent", "stripesim")
	if header := to.header(time.Now(), body); header != "" { // the wall clock: the receiver has no other
		request.Header.Set("Stripe-Signature", header)
	}
	response, err := w.hooks.Do(request)
	if err != nil {
		return 0
	}
	_ = response.Body.Close() // what it says is of no interest
	return response.StatusCode
}

// header is the Stripe-Signature of a delivery, right or as wrong as it is meant to be.
func (h Webhooks) header(now time.Time, body []byte) string {
	switch h.Signature {
	case signatureNone:
		return ""
	case signatureWrong:
		return sign(now, h.Secret+" of somebody else", body)
	case signatureOld:
		return sign(now.Add(-time.Hour), h.Secret, body)
	case signatureFuture:
		return sign(now.Add(time.Hour), h.Secret, body)
	}
	return sign(now, h.Secret, body)
}

// sign makes the header Stripe-Signature, with one signature for each secret.
func sign(at time.Time, secrets string, body []byte) string {
	t := strconv.FormatInt(at.Unix(), 10)
	header := "t=" + t
	for secret := range strings.SplitSeq(secrets, ",") {
		mac := hmac.New(sha256.New, []byte(strings.TrimSpace(secret)))
		_, _ = mac.Write([]byte(t + "."))
		_, _ = mac.Write(body)
		header += ",v1=" + hex.EncodeToString(mac.Sum(nil))
	}
	return header
}

// newHooks is the client that delivers.
func newHooks() *http.Client {
	return &http.Client{
		Transport:     &http.Transport{MaxIdleConnsPerHost: deliveriesAtOnce, IdleConnTimeout: time.Minute},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

const deliveriesAtOnce = 16
