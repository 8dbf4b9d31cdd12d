package console

import (
	"cmp"
	"html/template"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"holdfast/domain"
	"holdfast/outbox"
)

// filterForm is a filter as the address has it and the form shows it.
type filterForm struct {
	Stuck    bool
	Kind     domain.EffectKind
	Status   domain.EffectStatus
	Older    string
	Kinds    []domain.EffectKind
	Statuses []domain.EffectStatus
	Ages     []choice
}

type choice struct{ Value, Text string }

func ages() []choice {
	return []choice{
		{"", "any age"},
		{"1m0s", "over 1 min"},
		{"5m0s", "over 5 min"},
		{"15m0s", "over 15 min"},
		{"1h0m0s", "over 1 h"},
		{"6h0m0s", "over 6 h"},
		{"24h0m0s", "over 1 d"},
		{"168h0m0s", "over 7 d"},
	}
}

func unfinished() []domain.EffectStatus {
	return []domain.EffectStatus{domain.EffectPending, domain.EffectInDoubt, domain.EffectParked}
}

func finished() []domain.EffectStatus {
	return []domain.EffectStatus{domain.EffectDone, domain.EffectNotNeeded, domain.EffectDiscarded}
}

// filter reads a filter; what it cannot mean is refused with what it can.
func filter(values url.Values, statuses []domain.EffectStatus) (filterForm, outbox.Filter, error) {
	form := filterForm{
		Stuck: values.Get("stuck") == "1", Kind: domain.EffectKind(values.Get("kind")), Status: domain.EffectStatus(values.Get("status")),
		Older: strings.TrimSpace(values.Get("older")), Kinds: kinds(), Statuses: statuses, Ages: ages(),
	}
	f := outbox.Filter{Stuck: form.Stuck, Kind: form.Kind, Status: form.Status}
	var wrong []string
	if form.Kind != "" && !slices.Contains(form.Kinds, form.Kind) {
		wrong = append(wrong, "kind is one of "+list(form.Kinds))
	}
	if form.Status != "" && !slices.Contains(statuses, form.Status) {
		wrong = append(wrong, "status is one of "+list(statuses))
	}
	if s := values.Get("stuck"); s != "" && s != "1" && s != "0" {
		wrong = append(wrong, "stuck is 1 or 0")
	}
	if form.Older != "" {
		d, err := time.ParseDuration(form.Older)
		if err != nil || d < 0 || d > 10*365*24*time.Hour {
			wrong = append(wrong, "older is a time such as 15m or 24h")
		}
		f.OlderThan, form.Older = d, d.String()
		if !slices.ContainsFunc(form.Ages, func(c choice) bool { return c.Value == form.Older }) {
			form.Ages = append(form.Ages, choice{form.Older, "over " + span(d)})
		}
	}
	if len(wrong) > 0 {
		return form, f, refusal(http.StatusBadRequest, "The filter is not understood", sentence(strings.Join(wrong, "; ")),
			link{"/effects?stuck=1", "What is stuck"})
	}
	return form, f, nil
}

// values is the filter for an address.
func (f filterForm) values() url.Values {
	values := url.Values{}
	for name, value := range map[string]string{"kind": string(f.Kind), "status": string(f.Status), "older": f.Older} {
		if value != "" {
			values.Set(name, value)
		}
	}
	if f.Stuck {
		values.Set("stuck", "1")
	}
	return values
}

// Query is the filter for a link.
func (f filterForm) Query() template.URL { return template.URL(f.values().Encode()) } //nolint:gosec // encoded

// Says is the filter in words.
func (f filterForm) Says() string {
	text := cmp.Or(map[bool]string{true: "stuck "}[f.Stuck], "") + cmp.Or(statusName(f.Status)+" ", "")
	text = strings.TrimSpace(text)
	if f.Status == "" && !f.Stuck {
		text = "unfinished"
	}
	noun := "effects"
	if f.Kind != "" {
		noun = strings.ToLower(effectName(f.Kind)) + "s"
	}
	text += " " + noun
	if d, err := time.ParseDuration(f.Older); err == nil && d > 0 {
		text += " older than " + span(d)
	}
	return text
}

func list[T ~string](values []T) string {
	names := make([]string, 0, len(values))
	for _, v := range values {
		names = append(names, string(v))
	}
	return strings.Join(names, ", ")
}

func sorted(names map[string]bool) []string { return slices.Sorted(maps.Keys(names)) }
