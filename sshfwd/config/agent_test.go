package config

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestParseKeysToAgent(t *testing.T) {
	for value, want := range map[string]KeysToAgent{
		"": {}, "no": {}, "false": {}, "yes": {Add: true}, "true": {Add: true}, "Ask": {Add: true, Ask: true},
		"confirm": {Add: true, Confirm: true}, "confirm 3600": {Add: true, Confirm: true, Lifetime: time.Hour},
		"1h30m": {Add: true, Lifetime: 90 * time.Minute}, "90": {Add: true, Lifetime: 90 * time.Second},
		"1w": {Add: true, Lifetime: 7 * 24 * time.Hour},
	} {
		got, err := parseKeysToAgent(value)
		require.NoError(t, err, value)
		require.Equal(t, want, got, value)
	}
	for _, value := range []string{"perhaps", "1y", "h", "0", "ask 1h", "confirm x", "yes 1h", "confirm 1h 2h", "99999999999"} {
		_, err := parseKeysToAgent(value)
		var bad *Error
		require.ErrorAs(t, err, &bad, value)
	}
}
