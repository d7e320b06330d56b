package config

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPermitRemoteOpen(t *testing.T) {
	for value, want := range map[string][]Endpoint{
		"":                  nil,
		"any":               nil,
		"none":              {},
		"a:1 *:22":          {{Host: "a", Port: 1}, {Host: "*", Port: 22}},
		"[::1]:80 b:*":      {{Host: "::1", Port: 80}, {Host: "b"}},
		" 192.0.2.1:65535 ": {{Host: "192.0.2.1", Port: 65535}},
	} {
		got, err := parsePermitRemoteOpen(value)
		require.NoError(t, err, value)
		require.Equal(t, want, got, value)
	}
	for _, value := range []string{"a", "a:", ":1", "a:0", "a:65536", "a:b", "a:1:2", "any none", "[::1:80"} {
		_, err := parsePermitRemoteOpen(value)
		var config *Error
		require.ErrorAs(t, err, &config, value)
	}
	for _, test := range []struct {
		value  string
		target Endpoint
		want   bool
	}{
		{"any", Endpoint{Host: "a", Port: 1}, true},
		{"none", Endpoint{Host: "a", Port: 1}, false},
		{"a:1", Endpoint{Host: "a", Port: 1}, true},
		{"a:1", Endpoint{Host: "A", Port: 1}, false},
		{"a:1", Endpoint{Host: "a", Port: 2}, false},
		{"a:*", Endpoint{Host: "a", Port: 2}, true},
		{"b:* *:1", Endpoint{Host: "a", Port: 1}, true},
		{"[::1]:1", Endpoint{Host: "::1", Port: 1}, true},
	} {
		permitted, err := parsePermitRemoteOpen(test.value)
		require.NoError(t, err)
		require.Equal(t, test.want, Forwards{PermitRemoteOpen: permitted}.Permits(test.target), "%+v", test)
	}
}
