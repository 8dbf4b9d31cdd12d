package domain

// Secret is a string that formatting hides: in logs, errors, JSON and %+v alike.
type Secret string

const redacted = "[redacted]"

// Reveal returns the secret itself, for the one place that needs it.
func (s Secret) Reveal() string { return string(s) }

// String hides the secret.
func (s Secret) String() string { return redacted }

// GoString hides the secret from %#v.
func (s Secret) GoString() string { return redacted }

// MarshalText hides the secret from JSON and from structured logs.
func (s Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// UnmarshalText takes the secret from a flag or the environment.
func (s *Secret) UnmarshalText(b []byte) error {
	*s = Secret(b)
	return nil
}
