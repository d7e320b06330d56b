package hostkey

import (
	"bytes"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/testkit/sshkeys"
)

// A list that is cut short anywhere, or has something unknown, is an error.
func TestBrokenKRL(t *testing.T) {
	whole := sshkeys.KRLOfID("test")
	_, err := parseKRL(whole)
	require.NoError(t, err)
	header := len(whole) - len(whole[bytes.LastIndexByte(whole, krlCertificates):])
	for n := len(krlMagic); n < len(whole); n++ {
		if _, err := parseKRL(whole[:n]); err == nil {
			require.Equal(t, header, n, "without its only section it is a list of nothing")
		}
	}
	for _, kind := range []byte{0, 4, 6, 254} {
		bad := slices.Clone(whole)
		bad[header] = kind
		_, err := parseKRL(bad)
		require.Error(t, err)
	}
	bad := slices.Clone(whole)
	bad[11] = 2
	_, err = parseKRL(bad)
	require.ErrorContains(t, err, "version")
}
