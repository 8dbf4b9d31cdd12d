package clients

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"strings"

	"github.com/google/uuid"

	"holdfast/domain"
)

// TokenID names a token without being able to open anything: it is what lists, logs and revocations use.
type TokenID struct{ uuid.UUID }

const (
	tokenPrefix = "hf_" // so that a leaked token is recognised by secret scanners
	tokenBytes  = 32    // 256 random bits: beyond guessing, which is why a plain hash is enough
)

// newToken makes a token and the hash that is stored of it.
func newToken() (domain.Secret, []byte) {
	random := make([]byte, tokenBytes)
	_, _ = rand.Read(random) // never fails: the program ends where there is no randomness
	token := domain.Secret(tokenPrefix + base64.RawURLEncoding.EncodeToString(random))
	return token, hash(token)
}

// newSession makes what a signed-in browser shows, and the hash that is stored of it.
func newSession() (domain.Secret, []byte) {
	random := make([]byte, tokenBytes)
	_, _ = rand.Read(random) // as above
	session := domain.Secret(base64.RawURLEncoding.EncodeToString(random))
	return session, hash(session)
}

// hash is what is stored and looked up. Looking a token up by its hash leaks nothing through timing: whoever probes
// cannot choose the hash.
func hash(token domain.Secret) []byte {
	sum := sha256.Sum256([]byte(token.Reveal()))
	return sum[:]
}

// wellFormed tells whether a token can be one of ours at all, and so is worth a look at the database.
func wellFormed(token domain.Secret) bool {
	text, ok := strings.CutPrefix(token.Reveal(), tokenPrefix)
	return ok && len(text) == base64.RawURLEncoding.EncodedLen(tokenBytes)
}

func wellFormedSession(session domain.Secret) bool {
	return len(session) == base64.RawURLEncoding.EncodedLen(tokenBytes)
}
