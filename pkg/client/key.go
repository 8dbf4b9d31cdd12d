package client

import (
	"crypto/rand"
	"errors"
)

// Key is an idempotency key: 1 to 255 visible ASCII characters that name one intention. The same key with the same
// request is never carried out twice; a changed request is a new intention and needs a new key. Store it with what it is
// for, before the first call: then a restarted program can still learn what became of it.
type Key string

const maxKey = 255

// NewKey makes a key that nobody else makes.
func NewKey() Key { return Key(rand.Text()) }

// check refuses what the API would refuse or read differently: a leading quote begins a quoted string there.
func (k Key) check() error {
	if k == "" || len(k) > maxKey || k[0] == '"' || !visibleASCII(string(k)) {
		return errors.New("the key is malformed: want 1 to 255 visible ASCII characters, the first of them no quote")
	}
	return nil
}
