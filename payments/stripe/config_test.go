package stripe

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/domain"
)

func TestConfigNamesEveryWrongField(t *testing.T) {
	t.Parallel()
	_, err := New(Config{APIKey: "SENTINELKEY", BaseURL: "SENTINELURL", Timeout: -time.Second})
	require.ErrorIs(t, err, errAPIKey)
	require.ErrorIs(t, err, errBaseURL)
	require.ErrorIs(t, err, errTimeout)
	require.NotContains(t, err.Error(), "SENTINEL")
}

func TestKeyTellsTheMode(t *testing.T) {
	t.Parallel()
	for key, live := range map[domain.Secret]bool{
		"sk_test_abc123": false, "rk_test_abc123": false, "sk_live_abc123": true, "rk_live_abc_123": true,
	} {
		g, err := New(Config{APIKey: key})
		require.NoError(t, err)
		require.Equal(t, live, g.Livemode())
	}
	for _, key := range []domain.Secret{"", "sk_test_", "pk_live_abc", "whsec_abc", "sk_live_abc\n", " sk_test_abc", "sk_prod_abc", "xsk_test_a"} {
		_, err := New(Config{APIKey: key})
		require.ErrorIs(t, err, errAPIKey)
	}
}

func TestBaseURL(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]error{
		"":                            nil,
		"http://127.0.0.1:12111":      nil,
		"https://api.stripe.com":      nil,
		"https://api.stripe.com/v1/":  nil,
		"127.0.0.1:12111":             errBaseURL,
		"ftp://127.0.0.1":             errBaseURL,
		"http://user:pass@127.0.0.1":  errBaseURL,
		"http://127.0.0.1/?key=value": errBaseURL,
		"http://127.0.0.1/#x":         errBaseURL,
		"http://":                     errBaseURL,
	} {
		_, err := New(Config{APIKey: "sk_test_a", BaseURL: url})
		require.ErrorIs(t, err, want, url)
	}
	_, err := New(Config{APIKey: "sk_live_a", BaseURL: "http://127.0.0.1:12111"})
	require.ErrorIs(t, err, errPlain)
	_, err = New(Config{APIKey: "rk_live_a", BaseURL: "https://proxy.example"})
	require.NoError(t, err)
}
