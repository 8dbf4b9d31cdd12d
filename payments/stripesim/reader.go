package stripesim

import (
	"slices"
	"strconv"
	"strings"
)

// reader takes parameters out by name and remembers which names an operation knows, so that finish can refuse the rest. The first
// problem wins; later reads answer zero values.
type reader struct {
	params params
	known  map[string]bool
	err    *apiError
}

func (p params) read() *reader { return &reader{params: p, known: map[string]bool{"expand": true}} }

func (r *reader) refuse(err *apiError) {
	if r.err == nil {
		r.err = err
	}
}

// text reads an optional string; absent and empty are both "".
func (r *reader) text(name string) string {
	r.known[name] = true
	value, present := r.params[name]
	if !present {
		return ""
	}
	text, isText := value.(string)
	if !isText {
		r.refuse(invalid("", name, "%s must be a string.", name))
	}
	return text
}

func (r *reader) present(name string) bool { return r.params[name] != nil }

func (r *reader) required(name string) string {
	value := r.text(name)
	if value == "" {
		r.refuse(invalid("parameter_missing", name, "The parameter %s is required.", name))
	}
	return value
}

func (r *reader) integer(name string) int64 {
	text := r.text(name)
	if text == "" {
		return 0
	}
	value, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		r.refuse(invalid("parameter_invalid_integer", name, "%s must be an integer, not %q.", name, text))
	}
	return value
}

func (r *reader) boolean(name string) bool {
	switch text := r.text(name); text {
	case "", "false":
		return false
	case "true":
		return true
	default:
		r.refuse(invalid("", name, "%s must be true or false, not %q.", name, text))
		return false
	}
}

// choice reads one of the allowed values; absent is "".
func (r *reader) choice(name string, allowed ...string) string {
	text := r.text(name)
	if text != "" && !slices.Contains(allowed, text) {
		r.refuse(invalid("", name, "%s must be one of %s, not %q.", name, strings.Join(allowed, ", "), text))
	}
	return text
}

func (r *reader) list(name string) []string {
	r.known[name] = true
	if _, isText := r.params[name].(string); isText {
		r.refuse(invalid("", name, "%s must be an array.", name))
	}
	return r.params.list(name)
}

// object reads a container of strings. Present and empty, as in metadata=, answers an empty map and not nil.
func (r *reader) object(name string) map[string]string {
	r.known[name] = true
	value, present := r.params[name]
	if !present {
		return nil
	}
	fields := map[string]string{}
	if value == "" {
		return fields
	}
	container, isContainer := value.(params)
	if !isContainer {
		r.refuse(invalid("", name, "%s must be an object.", name))
	}
	for key, field := range container {
		text, isText := field.(string)
		if !isText {
			r.refuse(invalid("", name+"["+key+"]", "%s[%s] must be a string.", name, key))
		}
		fields[key] = text
	}
	return fields
}

// unmodelled refuses what Stripe knows and the simulator does not: to ignore it would be to guess what it does to the money.
func (r *reader) unmodelled(names ...string) {
	for _, name := range names {
		r.known[name] = true
		if r.present(name) {
			r.refuse(invalid("", name, "%s is a parameter of Stripe's that this simulator does not model.", name))
		}
	}
}

// finish returns the first problem, an unknown parameter included.
func (r *reader) finish() *apiError {
	names := make([]string, 0, len(r.params))
	for name := range r.params {
		if !r.known[name] {
			names = append(names, name)
		}
	}
	if len(names) > 0 {
		name := slices.Min(names)
		r.refuse(invalid("parameter_unknown", name, "There is no parameter %s here.", name))
	}
	return r.err
}
