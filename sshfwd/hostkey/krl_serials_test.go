package hostkey

import (
	"crypto/sha1"
	"crypto/sha256"
	"encoding/binary"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"gpg-bridge/internal/testkit/sshkeys"
)

// The lists are built by hand here, since ssh-keygen, which hostkey_openssh_test.go
// compares with, writes no malformed ones.

func krlString(b []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...)
}

func krlNumbers(numbers ...uint64) (b []byte) {
	for _, n := range numbers {
		b = binary.BigEndian.AppendUint64(b, n)
	}
	return b
}

// krlSection is a section of a list, or of its certificates.
func krlSection(kind byte, content ...[]byte) []byte {
	return append([]byte{kind}, krlString(slices.Concat(content...))...)
}

func krlList(sections ...[]byte) []byte {
	header := slices.Concat([]byte(krlMagic), []byte{0, 0, 0, 1}, make([]byte, 3*8), krlString([]byte("reserved")), krlString([]byte("comment")))
	return append(header, slices.Concat(sections...)...)
}

func krlOf(authority ssh.PublicKey, sections ...[]byte) []byte {
	var blob []byte
	if authority != nil {
		blob = authority.Marshal()
	}
	return krlList(krlSection(krlCertificates, krlString(blob), krlString([]byte("reserved")), slices.Concat(sections...)))
}

// Exactly the named serials of the named authority are revoked.
func TestKRLSerials(t *testing.T) {
	const last = math.MaxUint64
	k := newHostKeysOfTest(t)
	for name, c := range map[string]struct {
		section []byte
		revoked []uint64
	}{
		"list":             {krlSection(krlSerialList, krlNumbers(3, 7, last)), []uint64{3, 7, last}},
		"range":            {krlSection(krlSerialRange, krlNumbers(4, 6)), []uint64{4, 5, 6}},
		"range of one":     {krlSection(krlSerialRange, krlNumbers(7, 7)), []uint64{7}},
		"range to the end": {krlSection(krlSerialRange, krlNumbers(last-1, last)), []uint64{last - 1, last}},
		"bitmap":           {krlSection(krlSerialBitmap, krlNumbers(3), krlString([]byte{0b1_0000, 0b0000_0101})), []uint64{3, 5, 15}},
		"bitmap from 0":    {krlSection(krlSerialBitmap, krlNumbers(0), krlString([]byte{0b0000_0110})), []uint64{1, 2}},
		"bitmap of the end": {krlSection(krlSerialBitmap, krlNumbers(last-2), krlString([]byte{0b111})),
			[]uint64{last - 2, last - 1, last}},
		"bitmap of the last": {krlSection(krlSerialBitmap, krlNumbers(last), krlString([]byte{1})), []uint64{last}},
		"bitmap of nothing":  {krlSection(krlSerialBitmap, krlNumbers(last), krlString(nil)), nil},
		"two sections":       {append(krlSection(krlSerialList, krlNumbers(2)), krlSection(krlSerialRange, krlNumbers(5, 6))...), []uint64{2, 5, 6}},
		"no serial":          {krlSection(krlSerialList), nil},
	} {
		for _, authority := range []ssh.PublicKey{k.ca.PublicKey(), nil} {
			krl, err := parseKRL(krlOf(authority, c.section))
			require.NoError(t, err, name)
			for _, serial := range []uint64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 14, 15, 16, last - 3, last - 2, last - 1, last} {
				cert := k.certificate(t, func(c *ssh.Certificate) { c.Serial = serial })
				require.Equal(t, slices.Contains(c.revoked, serial), krl.revokes(cert), "%s: %d", name, serial)
			}
			require.False(t, krl.revokes(k.key), name)
		}
		krl, err := parseKRL(krlOf(k.other, c.section))
		require.NoError(t, err, name)
		for _, serial := range c.revoked {
			require.False(t, krl.revokes(k.certificate(t, func(c *ssh.Certificate) { c.Serial = serial })), name)
		}
	}
}

// A list that its writer cannot have meant is an error, which refuses every key.
func TestKRLThatCannotBe(t *testing.T) {
	const last = math.MaxUint64
	extension := func(critical ...byte) [][]byte {
		return [][]byte{krlString([]byte("new@example")), critical, krlString(nil)}
	}
	for name, list := range map[string][]byte{
		"serial 0":                krlOf(nil, krlSection(krlSerialList, krlNumbers(0))),
		"range from 0":            krlOf(nil, krlSection(krlSerialRange, krlNumbers(0, 1))),
		"range backwards":         krlOf(nil, krlSection(krlSerialRange, krlNumbers(2, 1))),
		"range and more":          krlOf(nil, krlSection(krlSerialRange, krlNumbers(1, 2, 3))),
		"half a serial":           krlOf(nil, krlSection(krlSerialList, []byte{1, 2, 3, 4})),
		"bitmap with 0":           krlOf(nil, krlSection(krlSerialBitmap, krlNumbers(0), krlString([]byte{1}))),
		"bitmap behind the end":   krlOf(nil, krlSection(krlSerialBitmap, krlNumbers(last), krlString([]byte{3}))),
		"bitmap and more":         krlOf(nil, krlSection(krlSerialBitmap, krlNumbers(1), krlString([]byte{1}), []byte{0})),
		"bitmap cut short":        krlOf(nil, krlSection(krlSerialBitmap, krlNumbers(1), []byte{0, 0, 0, 2, 1})),
		"unknown section":         krlOf(nil, krlSection(0x24)),
		"critical in a section":   krlOf(nil, krlSection(krlCertExtension, extension(1)...)),
		"extension cut short":     krlOf(nil, krlSection(krlCertExtension, krlString([]byte("new@example")))),
		"critical":                krlList(krlSection(krlExtension, extension(1)...)),
		"hash too short":          krlList(krlSection(krlSHA1, krlString(make([]byte, 19)))),
		"hash too long":           krlList(krlSection(krlSHA256, krlString(make([]byte, 33)))),
		"hash of the other kind":  krlList(krlSection(krlSHA1, krlString(make([]byte, 32)))),
		"hash cut short":          krlList(krlSection(krlSHA1, []byte{0, 0, 0, 20, 1})),
		"key id cut short":        krlOf(nil, krlSection(krlKeyID, []byte{0, 0, 0, 20, 1})),
		"nothing of certificates": krlList(krlSection(krlCertificates)),
		"section cut short":       krlList([]byte{krlKeys, 0, 0, 0, 1}),
	} {
		_, err := parseKRL(list)
		require.Error(t, err, name)
	}
	for name, list := range map[string][]byte{
		"nothing":                  krlList(),
		"extension":                krlList(krlSection(krlExtension, extension(0)...)),
		"extension in a section":   krlOf(nil, krlSection(krlCertExtension, extension(0)...)),
		"an authority and no more": krlOf(nil),
	} {
		_, err := parseKRL(list)
		require.NoError(t, err, name)
	}
}

// A key is revoked itself or by a hash, and with it all certificates for it and by it.
func TestKRLKeys(t *testing.T) {
	k := newHostKeysOfTest(t)
	forms := func(key ssh.PublicKey) map[string][]byte {
		blob := key.Marshal()
		short, long := sha1.Sum(blob), sha256.Sum256(blob)
		other := k.other.Marshal()
		return map[string][]byte{
			"key":    krlList(krlSection(krlKeys, krlString(other), krlString(blob))),
			"SHA1":   krlList(krlSection(krlSHA1, krlString(make([]byte, 20)), krlString(short[:]))),
			"SHA256": krlList(krlSection(krlSHA256, krlString(long[:]), krlString(make([]byte, 32)))),
		}
	}
	for i, listed := range []ssh.PublicKey{k.key, k.ca.PublicKey(), sshkeys.New(t)} {
		for name, list := range forms(listed) {
			krl, err := parseKRL(list)
			require.NoError(t, err, name)
			require.Equal(t, i == 0, krl.revokes(k.key), name)
			require.Equal(t, i < 2, krl.revokes(k.cert), name)
		}
	}
	krl, err := parseKRL(krlOf(k.ca.PublicKey(), krlSection(krlKeyID, krlString([]byte("x")), krlString([]byte("test")))))
	require.NoError(t, err)
	require.True(t, krl.revokes(k.cert))
	require.True(t, krl.revokes(k.certificate(t, func(c *ssh.Certificate) { c.Serial = 0 })))
	require.False(t, krl.revokes(k.certificate(t, func(c *ssh.Certificate) { c.KeyId = "tes" })))
}
