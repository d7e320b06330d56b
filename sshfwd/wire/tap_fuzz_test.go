package wire

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzKexTap: a server that is not authenticated yet cannot make us hold much, and the
// reply that is kept does not depend on how the bytes were split into reads.
func FuzzKexTap(f *testing.F) {
	packet := func(payload string) string {
		return string(binary.BigEndian.AppendUint32(nil, uint32(len(payload)+1+4))) + "\x04" + payload + "pppp"
	}
	f.Add([]byte("hello\r\nSSH-2.0-x\r\n"+packet("\x14kexinit")+packet("\x1freply")+packet("\x15")+"encrypted"), uint8(3))
	f.Add([]byte("SSH-2.0-x\n"+packet("\x21gex")+"\xff\xff\xff\xff"), uint8(1))
	f.Add(bytes.Repeat([]byte("x"), maxTapped+1), uint8(0))
	for _, seed := range []string{
		"", "hello\nworld\n", "SSH-2.0-x\r\n\x00\x00\x00\x01\x00", "SSH-2.0-x\r\n\xff\xff\xff\xff",
		"SSH-2.0-x\r\n\x00\x00\x00\x04\xff\x1f\x00\x00", "SSH-2.0-x\r\n\x00\x00\x00\x02\x00\x1f",
		"SSH-2.0-x\r\n\x00\x00\x00\x06\x00\x1f\x00\x00\x00\xff",
		"SSH-2.0-x\r\n\x00\x00\x00\x02\x00\x15\x00\x00\x00\x02\x00\x1f",
	} {
		f.Add([]byte(seed), uint8(0))
	}
	f.Fuzz(func(t *testing.T, data []byte, step uint8) {
		var whole, cut Tap
		whole.feed(data)
		for rest := data; len(rest) > 0; {
			n := min(len(rest), int(step)+1)
			cut.feed(rest[:n])
			rest = rest[n:]
			require.LessOrEqual(t, len(cut.data), maxTapped)
			require.False(t, cut.over && cut.data != nil, "held for nothing")
		}
		require.Equal(t, whole.reply, cut.reply)
		require.Equal(t, whole.over, cut.over)
		require.LessOrEqual(t, len(cut.reply), len(data))
	})
}
