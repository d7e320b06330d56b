package config

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Whether the user has ordered the host key algorithms shows by what has become of the
// list, or by how a -o is written.
func TestHostKeysOrdered(t *testing.T) {
	t.Parallel()
	defaults := []string{"a", "b", "c"}
	for _, test := range []struct {
		option string
		list   string
		want   bool
	}{
		{"", "a,b,c", false},
		{"", "a,c", false}, // -b
		{"", "a,b,c,x", false},
		{"", "b,a,c", true}, // ^b
		{"", "a,x", true},
		{"", "x,a,b,c", true},
		{"HostKeyAlgorithms=a,c", "a,c", true},
		{"hostkeyalgorithms -b", "a,c", false},
		{"HostKeyAlgorithms=+x", "a,b,c,x", false},
		{"HostKeyAlgorithms ^a", "a,b,c", true},
	} {
		options := []string{"Ciphers=x"}
		if test.option != "" {
			options = append(options, test.option, "HostKeyAlgorithms=a")
		}
		require.Equal(t, test.want, hostKeysOrdered(options, splitCommas(test.list), defaults), test)
	}
	require.False(t, hostKeysOrdered(nil, splitCommas("a,b"), nil), "the default is not known")
}
