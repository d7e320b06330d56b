//go:build unix

package agentside

import (
	"errors"
	"fmt"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"gpg-bridge/assuan"
	"gpg-bridge/internal/testkit/agentsocket"
)

func TestAuthenticateAtEachKindOfSocket(t *testing.T) {
	nonce := [assuan.NonceSize]byte([]byte("\n\r\x00 0123456789ab"))
	agent := greetingSocket(t)
	native := agentsocket.StartNative(t, agent, nonce)
	require.NoError(t, tryDial(t, &Locator{AgentSocket: native.SocketFile}))
	cygwin := agentsocket.StartCygwin(t, agent, nonce)
	require.NoError(t, tryDial(t, &Locator{AgentSocket: cygwin.SocketFile}))
}

// shortPeer answers a Cygwin handshake with a number of right bytes, and then reads
// and writes nothing any more.
type shortPeer struct {
	net.Conn
	nonce         [assuan.NonceSize]byte
	takes, answer int // how many bytes it takes and gives
}

var errCut = errors.New("cut")

func (p *shortPeer) Write(b []byte) (int, error) {
	if p.takes < len(b) {
		return 0, errCut
	}
	p.takes -= len(b)
	return len(b), nil
}

func (p *shortPeer) Read(b []byte) (int, error) {
	if p.answer == 0 {
		return 0, errCut
	}
	b = b[:min(len(b), p.answer)]
	p.answer -= len(b)
	return copy(b, p.nonce[:]), nil
}

// TestCygwinHandshakeCutAnywhere: it succeeds only when both sides have said all,
// and the error is what cut it.
func TestCygwinHandshakeCutAnywhere(t *testing.T) {
	const whole = assuan.NonceSize + assuan.CygwinCredentialsSize
	nonce := [assuan.NonceSize]byte([]byte("0123456789abcdef"))
	for _, takes := range []int{0, assuan.NonceSize, whole} {
		for answer := range whole + 1 {
			t.Run(fmt.Sprintf("%d of ours, %d of theirs", takes, answer), func(t *testing.T) {
				peer := &shortPeer{nonce: nonce, takes: takes, answer: answer}
				conn := &agentConn{Conn: peer, file: assuan.SocketFile{Kind: assuan.SocketCygwin, Nonce: nonce}}
				err := (&Endpoint{}).Authenticate(conn)
				if takes == whole && answer == whole {
					require.NoError(t, err)
					return
				}
				require.ErrorIs(t, err, errCut)
			})
		}
	}
}
