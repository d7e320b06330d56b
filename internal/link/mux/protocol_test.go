//go:build unix

package mux

import (
	"encoding/binary"
	"io"
	"net"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"gpg-bridge/internal/link"
	"gpg-bridge/internal/testkit/env"
)

// packet is a message with its length.
func packet(fields ...uint32) []byte {
	var body []byte
	for _, field := range fields {
		body = binary.BigEndian.AppendUint32(body, field)
	}
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
}

// If the other end is not a master, that is found out at once or after a bounded wait, and
// nothing it says is believed.
func TestNotAMaster(t *testing.T) {
	t.Parallel()
	hello := packet(msgHello, protocolVersion)
	for name, test := range map[string]struct {
		says []byte
		err  error
	}{
		"hangs up":              {nil, &link.LostError{}},
		"another protocol":      {[]byte("SSH-2.0-OpenSSH_9.2\r\n"), errProtocol},
		"another version":       {packet(msgHello, 5), errProtocol},
		"no hello":              {packet(sayAlive, 1, 1), errProtocol},
		"empty":                 {packet(), errProtocol},
		"half a hello":          {hello[:7], &link.LostError{}},
		"extensions and no end": {append(packet(msgHello, protocolVersion), 0xff, 0xff, 0xff, 0xff), errProtocol},
		"another request":       {append(hello, packet(sayAlive, 2, 1)...), errProtocol},
		"no process":            {append(hello, packet(sayAlive, 1, 0)...), errProtocol},
		"no number":             {append(hello, packet(sayAlive, 1)...), errProtocol},
		"no answer":             {append(hello, packet(sayOK, 1)...), errProtocol},
		"refusal without words": {append(hello, packet(sayFailure, 1)...), &RefusedError{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(env.ShortDir(t), "control")
			listener, err := net.Listen("unix", path)
			require.NoError(t, err)
			served := make(chan struct{})
			go func() {
				defer close(served)
				conn, err := listener.Accept()
				if err != nil {
					return
				}
				_, _ = conn.Write(test.says)
				_ = conn.(*net.UnixConn).CloseWrite()
				_, _ = io.Copy(io.Discard, conn)
				_ = conn.Close()
			}()
			_, err = Open(t.Context(), Options{ControlPath: path})
			_ = listener.Close()
			<-served
			var lost *link.LostError
			var refused *RefusedError
			switch test.err.(type) {
			case *link.LostError:
				require.ErrorAs(t, err, &lost)
			case *RefusedError:
				require.ErrorAs(t, err, &refused)
			default:
				require.ErrorIs(t, err, test.err)
			}
		})
	}
}

// The messages are those of OpenSSH: mux_client_forward in mux.c.
func TestForwardMessage(t *testing.T) {
	t.Parallel()
	message := ssh.Marshal(streamForward(forwardRemote, "/a", "/bc"))
	require.Equal(t, "\x00\x00\x00\x02\x00\x00\x00\x02/a\xff\xff\xff\xfe\x00\x00\x00\x03/bc\xff\xff\xff\xfe", string(message))
}

// The master's user may say no (ControlMaster ask).
func TestDenied(t *testing.T) {
	t.Parallel()
	s := askingMaster(t)
	shared := s.open(t)
	path := remotePath(t)
	_, err := shared.Forward(t.Context(), path, echo)
	var refused *RefusedError
	require.ErrorAs(t, err, &refused)
	require.True(t, refused.Denied)
	require.Contains(t, refused.Hint(), "ControlMaster")
	_, err = shared.DialUnix(t.Context(), path)
	var prohibited *link.DialError
	require.ErrorAs(t, err, &prohibited)
	require.True(t, prohibited.Prohibited)
	require.ErrorAs(t, shared.Run(t.Context(), "true", nil, nil, nil), &refused)
	require.NoError(t, shared.Close())
	s.requireTidy(t)
}
