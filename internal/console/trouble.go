package console

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"holdfast/domain"
	"holdfast/internal/clients"
	"holdfast/internal/operator"
	"holdfast/outbox"
	"holdfast/payments"
)

// trouble is an answer that tells why there is no other, and what to do.
type trouble struct {
	Status int
	Title  string
	Detail string
	Links  []link
	Again  bool // the page loads itself again until it has another answer
}

func (t *trouble) Error() string { return t.Title + ": " + t.Detail }

type link struct{ Path, Text string }

func refusal(status int, title, detail string, links ...link) *trouble {
	return &trouble{Status: status, Title: title, Detail: detail, Links: links}
}

// with adds where to go from here.
func (t *trouble) with(links ...link) *trouble {
	t.Links = append(t.Links, links...)
	return t
}

// fail answers with a page that says what to do.
func (v *visit) fail(err error) {
	t := v.explain(err)
	if v.r.Header.Get("HX-Request") != "" { // a page that refreshes itself keeps what it shows, and says that it is old
		v.w.WriteHeader(t.Status)
		return
	}
	if !v.who.Can(clients.OperatorRead) { // the others' pages are not theirs
		t.Links = slices.DeleteFunc(t.Links, func(l link) bool { return !strings.HasPrefix(l.Path, "/finance") })
	}
	t = t.with(v.home())
	if t.Status == http.StatusServiceUnavailable {
		v.w.Header().Set("Retry-After", "2")
	}
	if t.Again && v.r.Method == http.MethodGet {
		v.w.Header().Set("Refresh", "2")
	}
	v.render(t.Status, "trouble", t.Title, t)
}

// explain finds the words for an error.
func (v *visit) explain(err error) *trouble {
	var known *trouble
	var refused *outbox.RefusedError
	var invalid *domain.ValidationError
	var large *http.MaxBytesError
	audit := link{"/audit", "Audit"}
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &refused):
		return refusal(http.StatusConflict, "Refused", sentence(refused.Reason)+first(refused)+" Nothing was changed.").with(audit)
	case errors.As(err, &invalid):
		return refusal(http.StatusUnprocessableEntity, "Not understood", sentence(invalid.Field+": "+invalid.Reason)+" Nothing was changed.")
	case errors.Is(err, domain.ErrNotFound):
		return refusal(http.StatusNotFound, "There is no such thing", "No effect, booking, request or run has this id. Look whether it was copied whole.")
	case errors.Is(err, outbox.ErrCursor):
		return refusal(http.StatusBadRequest, "There is no such page of the list", "The address is not one that the console has made. Start from the first page.",
			link{"/effects?stuck=1", "What is stuck"})
	case errors.Is(err, payments.ErrUnread):
		return refusal(http.StatusServiceUnavailable, "The provider could not be read",
			"The act needs to know what the provider shows, and it does not answer. Nothing was changed: try again in a moment.").with(audit)
	case errors.Is(err, operator.ErrBroker):
		return refusal(http.StatusServiceUnavailable, "The broker did not take it",
			"The event was sent, and no acknowledgement came. Nothing was recorded: try again in a moment, consumers drop a repeat by its id.").with(audit)
	case errors.As(err, &large):
		return refusal(http.StatusRequestEntityTooLarge, "Too much text", "Nothing was done; shorten the text.")
	}
	busy := v.c.config.Transient(err) || errors.Is(err, domain.ErrBusy) || errors.Is(err, context.DeadlineExceeded)
	if !busy && v.r.Context().Err() == nil {
		v.c.logger.ErrorContext(v.r.Context(), "a page of the console failed", "page", v.r.Pattern, "error", err.Error())
	}
	detail := "Load the page again in a moment."
	if v.r.Method == http.MethodPost {
		detail = "Whether it was done is not known. Look at the audit before you do it again; to replay once more is safe at any moment."
	}
	if busy {
		return refusal(http.StatusServiceUnavailable, "The database is busy", detail).with(audit)
	}
	return refusal(http.StatusInternalServerError, "Something went wrong here", detail+" The log of the api process says more.").with(audit)
}

// first tells who was first, where somebody was and the refusal does not say so already.
func first(refused *outbox.RefusedError) string {
	if refused.By == "" || strings.Contains(refused.Reason, string(refused.By)) {
		return ""
	}
	text := " Somebody was first: " + string(refused.By)
	if refused.At != nil {
		text += ", at " + when(time.Time(*refused.At))
	}
	return text + "."
}

// sentence makes a sentence of a refusal.
func sentence(s string) string {
	s = strings.TrimSpace(s)
	if s == "" {
		return ""
	}
	_, first := utf8.DecodeRuneInString(s)
	s = strings.ToUpper(s[:first]) + s[first:]
	if !strings.ContainsAny(s[len(s)-1:], ".!?") {
		s += "."
	}
	return s
}
