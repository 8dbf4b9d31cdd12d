package stripesim

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParamsMeanTheSameHoweverTheyAreSpelt(t *testing.T) {
	t.Parallel()
	digest := func(form string) string {
		parsed, err := parseParams(form)
		require.NoError(t, err)
		return parsed.digest()
	}
	require.Equal(t, digest("a=1&b[c]=2&d[]=x&d[]=y"), digest("d%5B0%5D=x&b%5Bc%5D=2&d[1]=y&a=1"))
	require.NotEqual(t, digest("d[]=x&d[]=y"), digest("d[]=y&d[]=x"))
	require.NotEqual(t, digest("a=1"), digest("a=1&b="))
}

func TestMalformedParamsAreRefused(t *testing.T) {
	t.Parallel()
	for _, form := range []string{"[a]=1", "a[b=1", "a[b]c=1", "a=1&a[b]=2", "a[b]=2&a=1", "a=%zz", "%zz=1"} {
		_, err := parseParams(form)
		require.Error(t, err, form)
	}
}

func FuzzParams(f *testing.F) {
	f.Add("a=1&b[c][]=2&b[c][]=3")
	f.Add("a[b]c[d]=1&=&[]=")
	f.Fuzz(func(t *testing.T, form string) {
		parsed, err := parseParams(form)
		if err != nil {
			return
		}
		again, err := parseParams(form)
		require.NoError(t, err)
		require.Equal(t, parsed.digest(), again.digest())
	})
}

func TestGlob(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		pattern, text string
		want          bool
	}{
		{"*", "", true},
		{"a*", "abc", true},
		{"*c", "abc", true},
		{"a*c", "abc", true},
		{"a*b*c", "a-b-c", true},
		{"a*b*c", "a-c", false},
		{"ab*ba", "aba", false},
		{"abc", "abcd", false},
	} {
		require.Equal(t, tc.want, glob(tc.pattern, tc.text), tc.pattern+" "+tc.text)
	}
}
