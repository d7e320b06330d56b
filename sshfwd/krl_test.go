package sshfwd

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// krlOfID revokes a key id for every authority, for which ssh-keygen has no
// way.
func krlOfID(id string) []byte {
	str := func(b []byte) []byte { return append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...) }
	section := slices.Concat(str(nil), str(nil), []byte{krlKeyID}, str(str([]byte(id))))
	return slices.Concat([]byte(krlMagic), []byte{0, 0, 0, 1}, make([]byte, 3*8), str(nil), str(nil), []byte{krlCertificates}, str(section))
}

// What is cut short anywhere, or says what is not known, is no list.
func TestBrokenKRL(t *testing.T) {
	whole := krlOfID("test")
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
