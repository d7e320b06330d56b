package proxy

import (
	"bytes"
	"encoding/binary"
	"sync/atomic"
)

// sshNewKeys is SSH_MSG_NEWKEYS, after which everything is encrypted; the client sends it
// when it trusts the host's key (RFC 4253, 7.3).
const sshNewKeys = 21

// maxPlainPacket bounds an unencrypted packet, in bytes (RFC 4253, 6.1, asks for 35000).
const maxPlainPacket = 256 << 10

// A keyExchange watches what an SSH client sends until it has sent SSH_MSG_NEWKEYS. It is
// done at once if that is not SSH.
type keyExchange struct {
	done atomic.Bool

	greeted bool
	header  []byte // what there is of the next packet's
	skip    int    // how many bytes of the last packet are still to come
}

// watch reports whether there is more to watch.
func (k *keyExchange) watch(data []byte) bool {
	for len(data) > 0 && !k.done.Load() {
		data = k.step(data)
	}
	return !k.done.Load()
}

// step reads the next part of data and returns the rest. A packet begins with its length,
// the length of its padding and the message's number (RFC 4253, 6).
func (k *keyExchange) step(data []byte) []byte {
	const headerSize = 4 + 1 + 1
	switch {
	case !k.greeted: // one line (RFC 4253, 4.2)
		end := bytes.IndexByte(data, '\n')
		if end < 0 {
			return nil
		}
		k.greeted = true
		return data[end+1:]
	case k.skip > 0:
		n := min(k.skip, len(data))
		k.skip -= n
		return data[n:]
	}
	n := min(headerSize-len(k.header), len(data))
	if k.header = append(k.header, data[:n]...); len(k.header) == headerSize {
		length := binary.BigEndian.Uint32(k.header)
		if k.header[5] == sshNewKeys || length < 2 || length > maxPlainPacket {
			k.done.Store(true)
		}
		k.skip, k.header = int(length)-2, k.header[:0]
	}
	return data[n:]
}
