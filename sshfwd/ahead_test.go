package sshfwd

import (
	"bytes"
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"gpg-bridge/internal/testkit/fakesshd"
)

// countingSessions is a server whose every command succeeds; it counts the
// session channels and refuses the first ones.
func countingSessions(opened *atomic.Int32, refuse int32) *fakesshd.Server {
	return &fakesshd.Server{ChannelHandlers: map[string]fakesshd.ChannelHandler{
		"session": func(_ *fakesshd.Conn, newCh ssh.NewChannel) {
			if opened.Add(1) <= refuse {
				_ = newCh.Reject(ssh.ResourceShortage, "too many sessions")
				return
			}
			ch, reqs, err := newCh.Accept()
			if err != nil {
				return
			}
			for req := range reqs {
				_ = req.Reply(true, nil)
				_, _ = ch.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{0}))
				_ = ch.Close()
			}
		},
	}}
}

func TestOpenAheadIsTakenOnce(t *testing.T) {
	var opened atomic.Int32
	client := embedded(t, countingSessions(&opened, 0))
	client.OpenAhead()
	client.OpenAhead()
	for sessions := range int32(2) {
		_, err := client.Session(testContext(t), SessionRequest{Command: "true"})
		require.NoError(t, err)
		require.Equal(t, sessions+1, opened.Load())
	}
}

// A Run leaves the channel to the Session, unless the server has no other.
func TestOpenAheadIsTheSessions(t *testing.T) {
	client := realLink(t, "MaxSessions 1")
	client.OpenAhead()
	var out bytes.Buffer
	require.NoError(t, client.Run(testContext(t), "sh", strings.NewReader("echo ran\n"), &out, nil))
	status, err := client.Session(testContext(t), SessionRequest{Command: "echo session; exit 4", Stdout: &out})
	require.NoError(t, err)
	require.Equal(t, 4, status)
	require.Equal(t, "ran\nsession\n", out.String())
}

func TestOpenAheadRefusedIsOpenedAgain(t *testing.T) {
	var opened atomic.Int32
	client := embedded(t, countingSessions(&opened, 1))
	client.OpenAhead()
	_, err := client.Session(testContext(t), SessionRequest{Command: "true"})
	require.NoError(t, err)
	require.EqualValues(t, 2, opened.Load())
}

func TestOpenAheadUnanswered(t *testing.T) {
	client := embedded(t, &fakesshd.Server{Faults: fakesshd.Faults{NeverConfirm: map[string]bool{"session": true}}})
	client.OpenAhead()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := client.Session(ctx, SessionRequest{Command: "true"})
	require.ErrorIs(t, err, context.Canceled)
	client.OpenAhead() // is in flight when the client is closed
}

func TestOpenAheadServesASession(t *testing.T) {
	onBoth(t, func(t *testing.T, client *Client) {
		client.OpenAhead()
		var stdout bytes.Buffer
		status, err := client.Session(testContext(t), SessionRequest{Command: "echo hello; exit 3", Stdout: &stdout})
		require.NoError(t, err)
		require.Equal(t, 3, status)
		require.Equal(t, "hello\n", stdout.String())
	})
}
