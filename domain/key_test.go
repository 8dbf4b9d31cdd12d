package domain_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"holdfast/domain"
)

func TestParseKey(t *testing.T) {
	t.Parallel()
	for header, want := range map[string]string{
		"a": "a", "8e03978e-40d5-43dd-bc93-6894a57f9324": "8e03978e-40d5-43dd-bc93-6894a57f9324",
		`"a"`: "a", `"a\"b\\c"`: `a"b\c`, "!~": "!~", `a"b`: `a"b`,
		strings.Repeat("k", 255): strings.Repeat("k", 255), `"` + strings.Repeat("k", 255) + `"`: strings.Repeat("k", 255),
	} {
		key, err := domain.ParseKey(header)
		require.NoError(t, err, "%q", header)
		require.Equal(t, want, key, "%q", header)
	}
	key, err := domain.ParseKey(" a\t")
	require.NoError(t, err)
	require.Equal(t, "a", key, "white space around a field's value is no part of it")
	_, err = domain.ParseKey("")
	require.ErrorIs(t, err, domain.ErrKeyMissing)
	for _, header := range []string{
		" ", `""`, `"`, `"a`, `"a"b"`, `"a\`, `"\n"`, "a b", "a\tb", `"a b"`, "ä", "a\x7f", "a\x00", strings.Repeat("k", 256),
		`"` + strings.Repeat("k", 256) + `"`,
	} {
		_, err := domain.ParseKey(header)
		require.ErrorIs(t, err, domain.ErrKeyMalformed, "%q", header)
	}
}

// FuzzParseKey: what is a key at all is one of 1 to 255 visible ASCII characters, and its two forms name the same key.
func FuzzParseKey(f *testing.F) {
	for _, seed := range []string{
		"", "a", `"a"`, `"a\"b"`, "ä", `"\\"`, " a\t", "\u00a0a", "a\x00", `"`, `""`, `"a"b"`, `"a\`, `"\n"`, `a"b`, `\"a`, "a,b", "a;b=1",
		strings.Repeat("k", 255), strings.Repeat("k", 256), `"` + strings.Repeat(`\"`, 255) + `"`, `"` + strings.Repeat(`\"`, 256) + `"`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, header string) {
		key, err := domain.ParseKey(header)
		if err != nil {
			require.Empty(t, key)
			require.True(t, errors.Is(err, domain.ErrKeyMalformed) || errors.Is(err, domain.ErrKeyMissing))
			require.Equal(t, header == "", errors.Is(err, domain.ErrKeyMissing))
			require.NotRegexp(t, `^[!#-~][!-~]{0,254}$`, header, "a bare key is never refused")
			return
		}
		require.Regexp(t, `^[!-~]{1,255}$`, key)
		quoted := `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(key) + `"`
		for _, form := range []string{quoted, " " + quoted, quoted + "\t"} {
			again, err := domain.ParseKey(form)
			require.NoError(t, err, form)
			require.Equal(t, key, again, form)
		}
		if key[0] != '"' {
			again, err := domain.ParseKey(key)
			require.NoError(t, err)
			require.Equal(t, key, again)
		}
	})
}

// Incident 02: the provider's key comes from durable identity only, and keys of different intentions differ.
func TestIncident02_ProviderKeyIsDerived(t *testing.T) {
	t.Parallel()
	id := domain.PaymentID{UUID: uuid.MustParse("0193b1a0-0000-7000-8000-000000000001")}
	require.Equal(t, "hf:0193b1a0-0000-7000-8000-000000000001:confirm:2", domain.ProviderKey(id, domain.OpConfirm, 2))
	seen := map[string]bool{}
	for _, op := range []domain.Operation{domain.OpCreate, domain.OpUpdate, domain.OpConfirm, domain.OpCancel} {
		for n := 1; n < 4; n++ {
			seen[domain.ProviderKey(id, op, n)] = true
		}
	}
	require.Len(t, seen, 12)
}

// Incident 17: no way of formatting shows a secret.
func TestIncident17_SecretHidesItself(t *testing.T) {
	t.Parallel()
	s := struct{ Key domain.Secret }{"sk_test_sentinel"}
	for _, text := range []string{fmt.Sprint(s), fmt.Sprintf("%+v", s), fmt.Sprintf("%#v", s), fmt.Sprintf("%s %q %v", s.Key, s.Key, &s)} {
		require.NotContains(t, text, "sentinel")
	}
	require.Equal(t, "sk_test_sentinel", s.Key.Reveal())
}
