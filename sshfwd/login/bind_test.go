package login

import (
	"bytes"
	"io"
	"net"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"gpg-bridge/sshfwd/wire"
)

// said is a connection on which a server says this, in the smallest pieces.
type said struct {
	net.Conn
	io.Reader
}

func (s said) Read(p []byte) (int, error) { return s.Reader.Read(p) }

// replyIn is the first reply in what a server says.
func replyIn(t *testing.T, data []byte) []byte {
	t.Helper()
	tap := wire.NewTap(said{Reader: iotest.OneByteReader(bytes.NewReader(data))})
	_, err := io.Copy(io.Discard, tap)
	require.NoError(t, err)
	return tap.Reply()
}

func TestWhatIsNotAReplyBindsNothing(t *testing.T) {
	for name, data := range map[string]string{
		"nothing":       "",
		"no version":    "hello\nworld\n",
		"short packet":  "SSH-2.0-x\r\n\x00\x00\x00\x01\x00",
		"huge packet":   "SSH-2.0-x\r\n\xff\xff\xff\xff",
		"padding":       "SSH-2.0-x\r\n\x00\x00\x00\x04\xff\x1f\x00\x00",
		"empty reply":   "SSH-2.0-x\r\n\x00\x00\x00\x02\x00\x1f",
		"broken reply":  "SSH-2.0-x\r\n\x00\x00\x00\x06\x00\x1f\x00\x00\x00\xff",
		"after NEWKEYS": "SSH-2.0-x\r\n\x00\x00\x00\x02\x00\x15\x00\x00\x00\x02\x00\x1f",
		"endless":       strings.Repeat("x", 256<<10+1),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := NewBinding(replyIn(t, []byte(data)), []byte("session"))
			require.Error(t, err)
		})
	}
}

// FuzzHostBinding: nobody has signed what a fuzzer makes up.
func FuzzHostBinding(f *testing.F) {
	f.Add([]byte("SSH-2.0-x\r\n\x00\x00\x00\x0a\x04\x1freplypppp"))
	f.Fuzz(func(t *testing.T, data []byte) {
		_, err := NewBinding(replyIn(t, data), []byte("session"))
		require.Error(t, err)
	})
}
