package proxy

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"
)

func plainPacket(message byte, size int) []byte {
	packet := binary.BigEndian.AppendUint32(nil, uint32(size+2))
	packet = append(packet, 0, message)
	return append(packet, make([]byte, size)...)
}

// However the bytes are cut, it is done with NEWKEYS and not before.
func TestKeyExchange(t *testing.T) {
	said := []byte("SSH-2.0-OpenSSH_9.2p1\r\n")
	said = append(said, plainPacket(20, 1500)...)
	said = append(said, plainPacket(30, 40)...)
	for _, size := range []int{1, 2, 5, 7, 1000, 1 << 20} {
		var k keyExchange
		feed := func(data []byte) {
			for len(data) > 0 {
				n := min(size, len(data))
				k.watch(data[:n])
				data = data[n:]
			}
		}
		feed(said)
		require.False(t, k.done.Load(), "%d", size)
		feed(plainPacket(sshNewKeys, 10))
		require.True(t, k.done.Load(), "%d", size)
		require.False(t, k.watch([]byte("anything")))
	}
}

func TestKeyExchangeOfSomethingElse(t *testing.T) {
	for _, said := range []string{"GET / HTTP/1.1\r\nHost: dev\r\n\r\n", "\n\x00\x00\x00\x00\x00\x00"} {
		var k keyExchange
		require.False(t, k.watch([]byte(said)), "%q", said)
	}
}
